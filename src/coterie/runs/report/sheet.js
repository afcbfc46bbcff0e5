// A click on a header sorts its table by that column; a second click turns the order round. Cells without a number
// stay at the end.
function sortBy(header) {
  const table = header.closest("table"), body = table.tBodies[0], column = header.cellIndex;
  const up = header.getAttribute("aria-sort") !== "ascending";
  const words = header.classList.contains("words");
  const key = (row) => { const text = row.cells[column].textContent; return words ? text : parseFloat(text); };
  const compare = (a, b) => words ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  const rows = [...body.rows].map((row) => [key(row), row]);
  const missing = rows.filter(([value]) => Number.isNaN(value));
  const known = rows.filter(([value]) => !Number.isNaN(value));
  known.sort(([a], [b]) => (up ? 1 : -1) * compare(a, b));
  body.append(...[...known, ...missing].map(([, row]) => row));
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
}
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sortBy(button.parentElement));
}
