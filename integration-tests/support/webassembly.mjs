// A Python in WebAssembly runs a script: node webassembly.mjs PYODIDE SITE_PACKAGES FOLDER SCRIPT
// SITE_PACKAGES is its own site-packages, FOLDER is FOLDER to it. There are no processes or threads.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, site, folder, script] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const { python } = JSON.parse(fs.readFileSync(`${pyodide}/pyodide-lock.json`)).info;
const minor = python.split(".").slice(0, 2).join(".");
const mounts = { [`/lib/python${minor}/site-packages`]: site, [folder]: folder };
const runtime = await loadPyodide({
  // A command line without "pip" leaves the shim out.
  args: ["-c", "import pip"],
  env: { HOME: "/home", PIP_CONFIG_FILE: "/dev/null", PYTHONDONTWRITEBYTECODE: "1" },
  // Before Python starts, which reads the start-up files in its site-packages.
  fsInit: (FS) => {
    for (const [place, root] of Object.entries(mounts)) {
      FS.mkdirTree(place);
      FS.mount(FS.filesystems.NODEFS, { root }, place);
    }
  },
});
const written = (descriptor) => ({
  write: (buffer) => fs.writeSync(descriptor, buffer),
});
runtime.setStdout(written(1));
runtime.setStderr(written(2));
runtime.runPython(fs.readFileSync(script, "utf-8"));
process.exit(0);
