/** Sets an entry, and drops the oldest of a map that grows over a size: so a sandbox can run for weeks. */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most) map.delete(oldest as K);
}
