import { loadConfig } from '../../src/config/config.ts';

/** Prints what a process that starts here takes for its secrets. */
const { sessionSecret, tokenKeys } = loadConfig(process.env);
process.stdout.write(`${sessionSecret} ${tokenKeys.map(({ key }) => key.toString('base64')).join()}\n`);
