/** Whether what was thrown is an error of the operating system, or of SQLite, with this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
