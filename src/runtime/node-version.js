// Plain JavaScript that Node 20 can read: it looks at the version before any TypeScript is loaded.
import { existsSync } from 'node:fs';

const NEEDED_MAJOR = 24;

if (Number.parseInt(process.versions.node, 10) < NEEDED_MAJOR) {
  let advice =
    'Run "npm rebuild node --ignore-scripts=false": an install without scripts leaves Node 24 out.\nOr install';
  if (existsSync(new URL('../../node_modules/node/bin/node', import.meta.url))) {
    // A shell passes over a program that the system cannot load, such as npm's glibc binary on musl.
    advice = process.env.npm_lifecycle_event
      ? 'npm has installed Node 24, but it does not run on this system (as on Alpine Linux).\nInstall'
      : 'Use an npm script, such as "npm start": npm has installed Node 24 for these.\nOr install';
  }
  process.stderr.write(
    `The app needs Node ${NEEDED_MAJOR} or newer, and this is Node ${process.versions.node}.\n${advice} Node ${NEEDED_MAJOR} on this machine.\n`,
  );
  process.exit(1);
}
