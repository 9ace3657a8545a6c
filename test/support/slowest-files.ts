import type { Reporter, TestModule } from 'vitest/node';

const SHOWN = 10;

/** A reporter of vitest: prints at the end of a run which files took longest, in seconds. */
export class SlowestFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map((module) => {
      const { duration, collectDuration } = module.diagnostic();
      return { file: module.relativeModuleId, seconds: (duration + collectDuration) / 1_000 };
    });
    // Of a single file its own line says so.
    if (files.length <= SHOWN) return;
    files.sort((one, other) => other.seconds - one.seconds);
    const lines = files
      .slice(0, SHOWN)
      .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}`);
    process.stdout.write(`\nThe ${SHOWN} slowest files:\n${lines.join('\n')}\n`);
  }
}
