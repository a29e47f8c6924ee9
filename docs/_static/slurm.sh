#!/bin/bash
#SBATCH --ntasks=64 --cpus-per-task=1 --mem-per-cpu=2G --time=04:00:00
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Whoever reaches the port of a scheduler runs code as you: a certificate of this job keeps others out.
umask 077 && secret=$(mktemp -d -p "$HOME") && trap 'rm -r "$secret"' EXIT
openssl req -x509 -newkey rsa:3072 -nodes -days 2 -subj /CN=dask -keyout "$secret/key.pem" -out "$secret/cert.pem" 2>/dev/null
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true DASK_DISTRIBUTED__COMM__TLS__CA_FILE="$secret/cert.pem"
for role in SCHEDULER WORKER CLIENT; do
  export "DASK_DISTRIBUTED__COMM__TLS__${role}__CERT=$secret/cert.pem" "DASK_DISTRIBUTED__COMM__TLS__${role}__KEY=$secret/key.pem"
done
dask scheduler --protocol tls --interface ib0 --port 8786 --no-dashboard &
sleep 10
srun --ntasks=63 dask worker "tls://$(hostname -i):8786" --nthreads 1 --nworkers 1 --no-dashboard &
genbounds audit --backend dask --scheduler "tls://$(hostname -i):8786" --out "$SLURM_SUBMIT_DIR/results"
