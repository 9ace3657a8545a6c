// Loaded in front of a worker whose memory is measured: what is only garbage is not to count.
process.on('SIGUSR2', () => globalThis.gc?.());
