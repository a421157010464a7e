import { readFileSync } from "node:fs";

/** Returns what the process has used, as far as the system reports it. */
export function usage(): Record<string, number> {
  const { user, system } = process.cpuUsage();
  const figures: Record<string, number> = { cpuTimeMs: Math.round((user + system) / 1000) };
  const read = (file: string, field: string, name: string, unit: number): void => {
    try {
      const number = new RegExp(`^${field}:\\s*(\\d+)`, "m").exec(readFileSync(file, "utf8"))?.[1];
      if (number) figures[name] = Number(number) * unit;
    } catch {
      // The system does not report it.
    }
  };
  read("/proc/self/status", "VmHWM", "peakMemoryBytes", 1024);
  read("/proc/self/io", "rchar", "ioReadBytes", 1);
  read("/proc/self/io", "wchar", "ioWriteBytes", 1);
  figures.peakMemoryBytes ??= process.resourceUsage().maxRSS * 1024;
  return figures;
}
