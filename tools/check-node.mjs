// Imported first by every command, before anything an old Node could fail to link.
const [major, minor] = process.versions.node.split('.').map(Number);
const isSupported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
if (!isSupported) {
  console.error(`Isthmus needs Node 20.19 or newer (20.x), or 22.12 or newer; this is Node ${process.versions.node}.`);
  process.exit(1);
}
