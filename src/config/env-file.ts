/**
 * Puts the variables of a `.env` file into `process.env`, if there is such a file; what is set already wins.
 * Entry points call it before they load the configuration.
 *
 * @param path of the file, from the current directory
 * @throws when the file is there and cannot be read
 */
export function loadEnvFile(path = '.env'): void {
  try {
    process.loadEnvFile(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}
