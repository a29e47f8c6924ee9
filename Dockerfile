# The command line on the processor, without encoders: docker run --rm -v "$PWD:/data" genbounds score real.npy gan.npy
FROM python:3.12-slim AS wheel
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.12-slim
COPY --from=wheel /wheel /wheel
RUN python -m pip install --no-cache-dir /wheel/*.whl && rm -r /wheel && useradd --create-home user
USER user
WORKDIR /data
ENTRYPOINT ["genbounds"]
CMD ["--help"]
