"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const grid = document.querySelector(".grid");
  const rows = [...grid.querySelectorAll("tr[data-machine]")];
  const cells = rows.map((row) => [...row.querySelectorAll("td[data-cell]")]);
  const heads = [...grid.querySelectorAll("thead .column")];
  const groups = [...grid.querySelectorAll("thead .group")];
  const columns = [...grid.querySelectorAll("col[data-column]")];
  const machineFilter = find("machine-filter");
  const variantFilter = find("variant-filter");
  const workload = find("workload");
  const onlyGaps = find("only-gaps");
  const why = find("why");
  const marks = { c: ["chosen", "■"], f: ["could", "○"], "-": ["", ""] };
  const said = { c: "gets", f: "could use", "-": "cannot use" };
  let current = null;

  const words = (input) => input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const matches = (text, wanted) => !wanted.length || wanted.some((word) => text.includes(word));

  function fill() {
    const coverage = data.workloads[workload.selectedIndex];
    rows.forEach((row, r) => {
      const line = coverage.rows[r];
      cells[r].forEach((cell, c) => {
        const [name, mark] = marks[line.cells[c]];
        cell.classList.remove("chosen", "could");
        if (name) cell.classList.add(name);
        cell.textContent = mark;
      });
      row.querySelector(".gets").textContent = line.gets;
    });
    if (current) explain(...current);
  }

  function filter() {
    const machines = words(machineFilter);
    const variants = words(variantFilter);
    const coverage = data.workloads[workload.selectedIndex];
    const shown = data.variants.map((label) => matches(label, variants));
    const wanted = (name) => matches(data.search[name] || name, machines);
    let count = 0;
    rows.forEach((row, r) => {
      const gap = data.gaps.includes(coverage.rows[r].outcome);
      row.hidden = !wanted(row.dataset.machine) || (onlyGaps.checked && !gap);
      count += row.hidden ? 0 : 1;
      cells[r].forEach((cell, c) => { cell.hidden = !shown[c]; });
    });
    heads.forEach((head, c) => { head.hidden = !shown[c]; });
    columns.forEach((column, c) => { column.hidden = !shown[c]; });
    let first = 0;
    for (const group of groups) {
      const size = Number(group.dataset.size);
      const left = shown.slice(first, first + size).filter(Boolean).length;
      group.hidden = !left;
      group.colSpan = Math.max(left, 1);
      first += size;
    }
    for (const heading of grid.querySelectorAll("tr.section")) {
      let row = heading.nextElementSibling;
      heading.hidden = true;
      for (; row && !row.classList.contains("section"); row = row.nextElementSibling) {
        if (!row.hidden) heading.hidden = false;
      }
    }
    for (const row of document.querySelectorAll(".list tr[data-machine]")) {
      row.hidden = !wanted(row.dataset.machine);
    }
    for (const row of document.querySelectorAll(".list tr[data-variant]")) {
      row.hidden = !matches(row.dataset.variant, variants);
    }
    const visible = shown.filter(Boolean).length;
    find("filter-result").textContent =
      `${count} of ${rows.length} machines, ${visible} of ${shown.length} variants`;
  }

  function explain(r, c) {
    current = [r, c];
    const line = data.workloads[workload.selectedIndex].rows[r];
    const state = line.cells[c];
    const name = rows[r].dataset.machine;
    why.replaceChildren();
    const strong = document.createElement("b");
    strong.textContent = `${name} ${said[state]} ${data.variants[c]}: `;
    const reasons = data.reasons[line.why[c]].map((number) => data.phrases[number]);
    why.append(strong, `${reasons.join("; ")}. `);
    const machine = document.createElement("span");
    machine.className = "soft";
    machine.textContent = data.titles[name];
    why.append(machine);
    why.hidden = false;
  }

  function place(cell) {
    const r = rows.indexOf(cell.parentElement);
    return [r, cells[r].indexOf(cell)];
  }

  function focus(r, c) {
    for (const cell of grid.querySelectorAll("td[tabindex='0']")) cell.tabIndex = -1;
    cells[r][c].tabIndex = 0;
    cells[r][c].focus();
  }

  function move(from, down, right) {
    let [r, c] = from;
    do { r += down; c += right; } while (cells[r] && cells[r][c] && (rows[r].hidden || cells[r][c].hidden));
    return cells[r] && cells[r][c] ? [r, c] : from;
  }

  const keys = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td[data-cell]");
    if (!cell || !keys[event.key]) return;
    event.preventDefault();
    focus(...move(place(cell), ...keys[event.key]));
  });
  for (const kind of ["mouseover", "focusin", "click"]) {
    grid.addEventListener(kind, (event) => {
      const cell = event.target.closest("td[data-cell]");
      if (cell) explain(...place(cell));
    });
  }

  // On paper nothing can be unfolded.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });

  for (const line of cells) for (const cell of line) cell.tabIndex = -1;
  if (cells.length && cells[0].length) cells[0][0].tabIndex = 0;
  for (const input of [machineFilter, variantFilter]) input.addEventListener("input", filter);
  onlyGaps.addEventListener("change", filter);
  workload.addEventListener("change", () => { fill(); filter(); });
  document.querySelector(".controls").hidden = false;
  // What the browser has kept of an earlier visit.
  fill();
  filter();
})();
