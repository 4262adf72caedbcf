// The form: what it shows of the choice. Texts from the page's data are only ever set as text.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { machineOf, readPlatform, select } = globalThis.variantChoice;
  const form = document.getElementById("form");
  const said = document.getElementById("said"); // is read aloud when it changes
  const below = document.getElementById("verdicts");
  const field = (name) => form.elements.namedItem(name);
  const MOST_OTHERS = 6;
  const touched = new Set(); // fields that the user set, which no longer follow the machine
  let file = null; // the platform file that was read: name, machine, target or problem

  function element(name, options, ...children) {
    const made = document.createElement(name);
    Object.assign(made, options);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  const notice = (textContent) => element("p", { className: "notice", textContent });
  const option = (value, text) => element("option", { value, textContent: text });
  const group = (label, options) => element("optgroup", { label }, ...options);

  // --- The fields

  function fill() {
    const { machines } = data;
    const groups = new Map();
    for (const [name, title, facts] of machines.named) {
      if (!groups.has(facts.group)) groups.set(facts.group, []);
      const driver = facts.nvidia ? ` · CUDA ${facts.nvidia[0]}` : "";
      groups.get(facts.group).push(option(name, title + driver));
    }
    for (const [label, options] of groups) field("machine").append(group(label, options));
    const gpus = (name, items) => items.map(([value, text]) => option(`${name}-${value}`, text));
    field("gpu").append(
      group("NVIDIA", gpus("nvidia", machines.capabilities.map(
        ([value, text]) => [value, `${text}: compute capability ${value}`]))),
      group("AMD", gpus("amd", machines.amd.map(([value, text]) => [value, `${text}: ${value}`]))),
      group("Intel", gpus("intel", machines.intel.map(
        ([value, text]) => [value, `${text}: ${value}`]))),
      group("Ascend", gpus("ascend", machines.ascend.map((value) => [value, value]))),
    );
    for (const [, title, , cpus] of machines.families) {
      field("cpu").append(group(title, cpus.map(([name, text]) => option(name, text))));
    }
    field("cpu").value = "x86_64_v3";
    const drivers = new Set(machines.named.flatMap((item) => item[2].nvidia?.[0] || []));
    const newest = [...drivers].sort((a, b) => machines.cuda.indexOf(a) - machines.cuda.indexOf(b));
    document.getElementById("drivers").append(...newest.map((value) => option(value, value)));
    field("driver").value = newest[0];
    document.getElementById("rocms").append(
      ...machines.rocm.map((value) => option(value, value)));
    field("rocm").value = machines.rocm[0];
    field("system").append(...data.systems.map(([name, title]) => option(name, title)));
    field("python").append(...data.pythons.map((version) => option(version, version)));
    field("version").append(...data.releases.map(({ version }) => option(version, version)));
    field("version").value = (data.releases.find((item) => !item.late) || data.releases[0]).version;
  }

  function show() {
    const kind = field("kind").value;
    for (const part of form.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== kind;
    const vendor = field("gpu").value.split("-")[0];
    for (const part of form.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== vendor;
  }

  // --- The machine that the fields describe: title, machine and system, or a problem

  function described() {
    const { machines } = data;
    const kind = field("kind").value;
    if (kind === "file") {
      if (!file) return null;
      return { title: file.name, system: file.system, ...file };
    }
    if (kind === "machine") {
      const found = machines.named.find(([name]) => name === field("machine").value);
      if (!found) return null;
      const [, title, facts] = found;
      return { title, system: facts.system, machine: machineOf(machines, facts) };
    }
    const cpuField = field("cpu");
    const [namespace, , , cpus] = machines.families.find(
      (item) => item[3].some(([name]) => name === cpuField.value));
    const [, title, bits, system] = cpus.find(([name]) => name === cpuField.value);
    const facts = { cpu: [namespace, bits] };
    const [vendor, ...rest] = field("gpu").value.split("-");
    const value = rest.join("-");
    const text = (name) => field(name).value.trim();
    if (vendor === "nvidia") {
      const found = /^(\d{1,3})(?:\.(\d{1,3})(?:\.\d+)*)?$/.exec(text("driver"));
      const driver = found && `${Number(found[1])}.${Number(found[2] || 0)}`;
      if (!driver) return { problem: "Write the CUDA version of the driver like 12.8." };
      if (!machines.cuda.includes(driver)) {
        const [newest, oldest] = [machines.cuda[0], machines.cuda[machines.cuda.length - 2]];
        return { problem: `CUDA ${driver} is outside of what is known, ${oldest} to ${newest}.` };
      }
      facts.nvidia = [driver, value];
    } else if (vendor === "amd") {
      const found = /^(\d{1,3}\.\d{1,3})(?:\.\d{1,5})?$/.exec(text("rocm"));
      if (!found) return { problem: "Write the ROCm version like 6.4." };
      facts.more = [["amd", [["gfx_arch", [value]], ["rocm_version", [found[1]]]]]];
    } else if (vendor === "intel") {
      const values = machines.intel.find(([ip]) => ip === value)[2];
      facts.more = [["intel", [["device_ip", values]]]];
    } else if (vendor === "ascend") {
      facts.more = [["ascend", [["npu_type", [value]]]]];
    }
    const [gpu] = field("gpu").selectedOptions;
    const chosen = vendor ? `${gpu.parentNode.label} ${gpu.text}; ` : "";
    return { title: `${chosen}CPU: ${title}`, system, machine: machineOf(machines, facts) };
  }

  // --- What is chosen

  const target = () =>
    field("system").selectedIndex * data.pythons.length + field("python").selectedIndex;

  function follow(system, release) {
    const has = data.systems.some(([name]) => name === system);
    if (!touched.has("system") && has) field("system").value = system;
    if (touched.has("python")) return;
    const first = field("system").selectedIndex * data.pythons.length;
    // The newest Python of those that most files are for.
    const counts = data.pythons.map((_, python) => release.files.filter(
      ([, kind]) => kind >= 0 && data.kinds[kind][first + python] >= 0).length);
    field("python").selectedIndex = counts.indexOf(Math.max(...counts));
  }

  // The fields for versions of projects that variants of a release are built against.
  function others(release) {
    const box = document.getElementById("others");
    const key = JSON.stringify(release.abi || []);
    if (box.dataset.key !== key) {
      box.dataset.key = key;
      const versions = (values) => values.map((value) => option(value, `${value}.*`));
      box.replaceChildren(...(release.abi || []).slice(0, MOST_OTHERS).map(([project, values]) =>
        element("label", {}, `${project.replace(/_/g, "-")} `,
          element("select", { name: `abi.${project}` }, option("", "any version"),
            ...versions(values)))));
    }
    return [...box.querySelectorAll("select")];
  }

  const anchors = (place) =>
    document.querySelectorAll(`[data-release="${place}"] tr:not(.metadata) td.files li > a`);

  function mark(place, chosen) {
    for (const row of document.querySelectorAll("tr.chosen, li.chosen")) {
      row.classList.remove("chosen");
    }
    if (!chosen) return;
    const item = anchors(place)[chosen.place].closest("li");
    item.classList.add("chosen");
    item.closest("tr").classList.add("chosen");
  }

  function choose() {
    show();
    const found = described();
    mark();
    if (!found || found.problem) {
      remember();
      said.replaceChildren(...(found ? [notice(found.problem)] : []));
      below.replaceChildren();
      return;
    }
    const place = field("version").selectedIndex;
    const release = data.releases[place];
    follow(found.system, release);
    found.machine.versions = new Map(others(release).map(({ name, value }) => [name.slice(4), value]));
    remember();
    const where = `${field("system").selectedOptions[0].text}, Python ${field("python").value}`;
    const { ranking, files, unknown } = select(data, release, found.machine, target());
    mark(place, files[0]);
    document.querySelector(`[data-release="${place}"]`).open = true;
    said.replaceChildren(
      element("p", { className: "soft", textContent: `${found.title}; ${where}` }),
      headline(release, place, files, found.machine),
      ...(release.problem ? [notice(`Its variant wheels cannot be used: ${release.problem}`)] : []),
    );
    below.replaceChildren(...(ranking ? [verdicts(release, ranking, files, unknown, where)] : []));
  }

  function headline(release, place, files, machine) {
    const project = `${data.project} ${release.version}`;
    if (!files.length) return nothing(project, place, machine);
    const [{ label, place: file }] = files;
    const anchor = anchors(place)[file];
    const what = label === null ? "the file without a variant" : "";
    return element("div", { className: "answer" },
      element("p", {}, `Chosen for ${project}: ${what}`,
        label === null ? null : element("strong", { className: "label", textContent: label })),
      element("p", {}, element("a", { href: anchor.href, textContent: anchor.textContent }),
        ...[...anchor.parentNode.querySelectorAll("span")].map((part) => ` ${part.textContent}`)),
      release.variants ? null : element("p", { className: "soft", textContent: plain() }));
  }

  // What is said of a version without variants.
  function plain() {
    const newest = data.releases.find((item) => item.variants);
    return `This version has no variants${newest ? `; the newest one that has is ${newest.version}` : ""}.`;
  }

  function nothing(project, place, machine) {
    const lines = [`Nothing of ${project} fits this machine, system and Python.`];
    const older = data.releases.findIndex(
      (item, other) => other > place && !item.late &&
        select(data, item, machine, target()).files.length);
    if (older >= 0) {
      lines.push(`Version ${data.releases[older].version} has a file for it, which installers take` +
        " if you do not ask for a version.");
    }
    return element("div", { className: "notice" },
      ...lines.map((textContent) => element("p", { textContent })));
  }

  function verdicts(release, ranking, files, unknown, where) {
    const chosen = files.length ? files[0].label : null;
    const yanked = release.yanked ? ", or it is yanked" : "";
    const there = new Set(files.map(({ label }) => label));
    const listed = new Set(release.labels);
    const row = (label, state, verdict, why) => element("tr", { className: state },
      element("th", { className: "label", scope: "row", textContent: label }),
      element("td", { textContent: verdict }),
      element("td", {}, ...why.map((textContent) => element("div", { textContent }))));
    const body = element("tbody", {});
    for (const { label, why } of ranking.fitting.filter((item) => listed.has(item.label))) {
      if (label === chosen) body.append(row(label, "chosen", "chosen", [why]));
      else if (there.has(label)) body.append(row(label, "fits", "fits as well", [why]));
      else body.append(row(label, "absent", "no file", [why, `there is no file for ${where}${yanked}`]));
    }
    for (const { label, why } of ranking.rejected.filter((item) => listed.has(item.label))) {
      body.append(row(label, "rejected", "does not fit", why));
    }
    for (const label of unknown) {
      body.append(row(label, "rejected", "does not fit", ["the index does not say what it needs"]));
    }
    const heads = ["Variant", "Verdict", "Why"].map((textContent) => element("th", { textContent }));
    return element("table", { className: "verdicts" },
      element("caption", { className: "hidden", textContent: "Every variant, best first" }),
      element("thead", {}, element("tr", {}, ...heads)), body);
  }

  // --- The fragment of the address: what makes a choice a link

  function remember() {
    const kind = field("kind").value;
    const given = new URLSearchParams();
    if (kind === "machine" && field("machine").value) given.set("machine", field("machine").value);
    if (kind === "parts") {
      const gpu = field("gpu").value;
      if (gpu) given.set("gpu", gpu);
      if (gpu.startsWith("nvidia")) given.set("driver", field("driver").value);
      if (gpu.startsWith("amd")) given.set("rocm", field("rocm").value);
      given.set("cpu", field("cpu").value);
    }
    const isChosen = [...given].length > 0; // a file cannot be in a link
    for (const name of touched) given.set(name, field(name).value);
    for (const { name, value } of document.querySelectorAll("#others select")) {
      if (value) given.set(name, value);
    }
    const fragment = isChosen ? `#${given}` : "#";
    if (fragment !== (location.hash || "#")) history.replaceState(null, "", fragment);
  }

  function recall() {
    const fragment = location.hash.slice(1);
    if (!fragment.includes("=")) {
      const part = fragment && document.getElementById(fragment);
      if (part && part.tagName === "DETAILS") part.open = true;
      return;
    }
    const given = new URLSearchParams(fragment);
    const known = ["machine", "gpu", "driver", "rocm", "cpu", "system", "python", "version"];
    if (given.has("machine")) field("kind").value = "machine";
    else if (given.has("gpu") || given.has("cpu")) field("kind").value = "parts";
    if (!given.has("machine") && !given.has("gpu")) field("gpu").value = "";
    for (const name of known.filter((item) => given.has(item))) {
      const before = field(name).value;
      field(name).value = given.get(name);
      if (field(name).selectedIndex === -1) field(name).value = before; // no such entry
      else if (["system", "python", "version"].includes(name)) touched.add(name);
    }
    for (const select of others(data.releases[field("version").selectedIndex])) {
      const value = given.get(select.name);
      if ([...select.options].some((item) => item.value === value)) select.value = value;
    }
    choose();
  }

  // --- Events

  async function read(given) {
    if (!given) return;
    field("kind").value = "file";
    try {
      const { namespaces, target: described } = readPlatform(await given.text());
      const system = described.get("platform");
      const python = described.get("python-version");
      const machine = { isFile: true, namespaces };
      const cpu = namespaces.get("aarch64")?.size ? "linux-aarch64" : "linux-x86_64";
      file = { name: given.name, machine, system: typeof system === "string" ? system : cpu };
      if (data.pythons.includes(python)) {
        field("python").value = python;
        touched.add("python");
      }
    } catch (error) {
      file = { problem: `${given.name}: ${error.message}` };
    }
    choose();
  }

  function start() {
    fill();
    const section = document.getElementById("choice");
    section.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", ({ target: { name } }) => {
      if (["system", "python", "version"].includes(name)) touched.add(name);
      if (name !== "file") choose();
    });
    field("file").addEventListener("change", () => read(field("file").files[0]));
    for (const name of ["dragover", "dragleave", "drop"]) {
      section.addEventListener(name, (event) => {
        event.preventDefault();
        section.classList.toggle("drop", name === "dragover");
        if (name === "drop") read(event.dataTransfer.files[0]);
      });
    }
    addEventListener("hashchange", recall);
    if (location.protocol.startsWith("http")) {
      const index = new URL("../", location.href.split(/[?#]/)[0]).href;
      for (const part of document.querySelectorAll(".index.unknown")) part.textContent = index;
      for (const part of document.querySelectorAll(".placeholder")) part.remove();
    }
    recall();
  }

  start();
})();
