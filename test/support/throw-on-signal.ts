/** Loaded into a process that is to fail where nobody catches it: SIGUSR2 throws, SIGQUIT rejects. */
process.on('SIGUSR2', () => {
  throw new Error('nobody catches this');
});
process.on('SIGQUIT', () => {
  void Promise.reject(new Error('nobody handles this'));
});
