/** Loaded into a process that is to fail where nobody catches it: SIGUSR2 throws, SIGHUP rejects. */
process.on('SIGUSR2', () => {
  throw new Error('nobody catches this');
});
process.on('SIGHUP', () => {
  void Promise.reject(new Error('nobody handles this'));
});
