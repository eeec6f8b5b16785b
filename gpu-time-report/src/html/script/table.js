// ---- The table: rows that open, sorting and filtering.

const toggle = (row) => {
  const button = row.querySelector("button");
  const opens = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", opens);
  if (!opens) return row.nextElementSibling.remove();
  const cell = el("td", { colspan: row.cells.length }, el("div", { class: "panes" }, details(row)));
  row.after(el("tr", { class: row.classList.contains("launch") ? "detail of-launch" : "detail" }, cell));
};
const showTable = (table) => {
  for (const row of all(".row", table)) {
    const name = row.querySelector(".name");
    const button = el("button", { type: "button", "aria-expanded": "false" });
    button.append(...name.childNodes);
    name.append(button);
    row.addEventListener("click", () => {
      if (getSelection().isCollapsed) toggle(row);
    });
  }

  const groups = all("tbody", table);
  const heads = all("thead th", table);
  const isNumeric = (column) => heads[column].classList.contains("n");
  // A function without a value of its own is sorted by that of its first launch.
  const value = (group, column) => {
    const cells = all(".row", group).map((row) => row.cells[column]);
    const found = cells.map((cell) => (isNumeric(column) ? cell.dataset.value : cell.textContent));
    return found.find(Boolean);
  };
  const sort = (column, direction) => {
    const numeric = isNumeric(column);
    const compare = (a, b) => {
      if (a.value === undefined || b.value === undefined) return (a.value === undefined) - (b.value === undefined);
      const order = numeric ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
      return direction === "ascending" ? order : -order;
    };
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", direction);
    const keyed = groups.map((group) => ({ group, value: value(group, column) }));
    // Those of one function follow its first.
    const functions = new Map();
    for (const { group } of keyed.sort(compare)) {
      const { site } = group.rows[0].dataset;
      functions.set(site, [...(functions.get(site) ?? []), group]);
    }
    table.append(...[...functions.values()].flat());
  };
  const natural = (column) => (isNumeric(column) ? "descending" : "ascending");
  const choice = document.querySelector(".sort select");
  heads.forEach((head, column) => {
    if (head.dataset.sortable === undefined) return;
    const button = el("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const reverse = natural(column) === "ascending" ? "descending" : "ascending";
      sort(column, now === natural(column) ? reverse : natural(column));
    });
    const option = el("option", { value: column }, head.textContent);
    if (head.hasAttribute("aria-sort")) option.selected = true;
    choice.append(option);
  });
  choice.addEventListener("change", () => sort(Number(choice.value), natural(Number(choice.value))));

  const search = document.querySelector(".tools [type=search]");
  const found = document.querySelector(".tools output");
  const text = (row) => {
    const { name, file, line, series } = read().report.sites[row.dataset.site];
    const { device, cache, key, launch } = series[row.dataset.series] ?? {};
    const names = (kernelsOf(row)?.shown ?? []).map(([at]) => read().kernels.names[at]);
    return [`${name} (${file}:${line})`, device, cache, key, launch?.name, ...names].join("\n").toLowerCase();
  };
  let texts;
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let visible = 0;
    if (words.length > 0) texts ??= groups.map((group) => all(".row", group).map(text).join("\n"));
    groups.forEach((group, i) => {
      group.hidden = !words.every((word) => texts[i].includes(word));
      visible += !group.hidden;
    });
    found.textContent = `${visible} of ${groups.length}`;
  };
  search.addEventListener("input", filter);
  filter();
  // The link to the function to look at first.
  document.querySelector(".lead a")?.addEventListener("click", () => {
    search.value = "";
    filter();
    const row = document.getElementById("first");
    if (row.querySelector("[aria-expanded=false]")) toggle(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    }
  });

  const withLaunches = document.querySelector(".tools [type=checkbox]");
  withLaunches?.addEventListener("change", () =>
    document.body.classList.toggle("without-launches", !withLaunches.checked));
};
