// Text tables. Pure.

/** Rows of cells under a head: the first column to the left, all others to the right. */
export function table(head, rows) {
  const lines = [head, ...rows].map((row) => row.map((cell) => format(cell)));
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const line = (cells) =>
    `  ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))).join('  ')}`;
  return [line(lines[0]), `  ${widths.map((width) => '─'.repeat(width)).join('  ')}`, ...lines.slice(1).map(line)]
    .map((text) => text.trimEnd())
    .join('\n');
}

/** Three figures are enough for a noisy machine; what was not measured is a dash. */
export function format(cell) {
  if (typeof cell !== 'number') return cell ?? '–';
  if (!Number.isFinite(cell)) return '–';
  const size = Math.abs(cell);
  if (size >= 100 || cell === 0) return String(Math.round(cell));
  return cell.toFixed(size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}
