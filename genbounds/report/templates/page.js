"use strict";
// A click on a heading sorts by that column: numbers by value, words by alphabet, blanks last.
const sort = (heading) => {
  const body = heading.closest("table").tBodies[0];
  const column = heading.cellIndex;
  const up = heading.getAttribute("aria-sort") !== "ascending";
  const key = (row) => row.cells[column].dataset.key;
  const order = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const gap = a - b;
    return (up ? 1 : -1) * (Number.isNaN(gap) ? a.localeCompare(b) : gap);
  };
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...[...body.rows].sort((a, b) => order(key(a), key(b))));
};
for (const button of document.querySelectorAll("th [role=button]")) {
  button.addEventListener("click", () => sort(button.parentElement));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sort(button.parentElement);
  });
}
// Say where a table is wider than the screen, also once it is unfolded.
const measure = new ResizeObserver((entries) => {
  for (const { target } of entries) target.classList.toggle("wider", target.scrollWidth > target.clientWidth + 4);
});
for (const scroll of document.querySelectorAll(".scroll")) measure.observe(scroll);
// On paper every number is shown.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
