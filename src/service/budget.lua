-- The rate budget of one company: releases one permit and grants the next, for all processes (Limits).
--
-- KEYS[1] string, JSON: the state. Times are milliseconds of Redis' clock.
--   limit, used   what the answers of the window say; they come in any order, so the highest use counts
--   ours          permits granted in this window
--   base          use beyond ours. Limit 120, remaining 100, 12 permits of ours: used is 20, so another app sent 8
--   reset, end    the window's end by the service's clock, which identifies the window; and by ours
--   length        the longest window so far
--   burst         as the last answer said
--   others_at     when another app last used the limit
--   blocked       when the company's block ends; `blocks`: those of buckets and routes
--   refusals      refusals in a row
--   errors        the last error of each route; `good_at`: the last success. They tell one route's errors from an outage
--   paces         for each route that an unknown guard refused: when its pace ends, and its last request
-- KEYS[2] sorted set: permits in flight, by the end of their lease
-- KEYS[3] sorted set: requests in the guard's bucket, by the time of their answer, or before it by the end of their lease
-- ARGV[1] JSON: see RateBudget.#run
--
--   unknown ── first answer ──▶ known ── its end passes ──▶ unknown
--   (one probe in flight)       (limit less use less flight)

local SAME_WINDOW_MS = 1500    -- resets of one window differ by rounding
local PROBE_MS = 2000          -- the holder of an older probe may be dead
local ASK_MS = 25              -- the next try, where an answer in flight will tell more
local ROLLED_OF = 60           -- one permit of so many may go into an unknown next window (bench: calm-600)
local OPEN_MS = 3000           -- this long before the window's end, reserved permits are free for all
local RESERVED_OF = 20         -- one permit of so many may be reserved for people
local SHARED_MS = 600000       -- how long a permit is held back after another app used the limit
local PACED_MS = 600000        -- how long a route is paced after an unknown guard's refusal
local FIRST_BLOCK_MS = 50      -- the shortest block; it doubles with each refusal in a row
local LONGEST_BLOCK_MS = 30000 -- and ends here, unless the service asks for more
local ERROR_MS = 60000         -- how long one route's errors block the company
local IDLE_MS = 1800000        -- how long an idle company's state stays

local state, flight, entries = KEYS[1], KEYS[2], KEYS[3]
local call = cjson.decode(ARGV[1])
local route, bucket = call.route, call.bucket
local name = bucket and bucket.name or route

local time = redis.call('TIME')
local now = time[1] * 1000 + math.ceil(time[2] / 1000)
local s = cjson.decode(redis.call('GET', state) or '{}')
s.blocks, s.paces, s.errors, s.ours = s.blocks or {}, s.paces or {}, s.errors or {}, s.ours or 0

-- The service may have counted a request without an answer. It stays among ours; beside another app it counts as used.
local function lose(requests)
  if s.used ~= nil and s.used > s.ours then s.used = s.used + requests end
end

-- The holders of these leases died.
lose(redis.call('ZREMRANGEBYSCORE', flight, '-inf', now))
local function in_flight() return redis.call('ZCARD', flight) end

-- An end too far away means that Redis' clock was set back.
local function is_known()
  return s['end'] ~= nil and now < s['end'] and s['end'] - now <= call.windowMs + 1000
end

-- Learns from the limit's headers.
local function learn(rate)
  local used = math.max(0, rate.limit - rate.remaining)
  local ends_at = now + rate.endsInMs
  if s.reset ~= nil and math.abs(rate.resetMs - s.reset) <= SAME_WINDOW_MS then
    s.used = math.max(s.used, used)
    s['end'] = is_known() and math.min(s['end'], ends_at) or ends_at
  elseif s.reset ~= nil and is_known() and rate.resetMs < s.reset then
    return -- of the window before
  else
    s.used, s.reset, s['end'] = used, rate.resetMs, ends_at
    -- Requests in flight may count in this window or in the one before.
    s.ours = in_flight() + 1
    s.base = math.max(0, used - s.ours)
    s.length = math.max(s.length or 0, rate.endsInMs)
  end
  s.limit, s.burst = math.min(rate.limit, call.limit), rate.burstRemaining or s.burst
  if used - s.ours > s.base then s.base, s.others_at = used - s.ours, now end
end

-- The service does not describe its window: one begins now, with the limit that it names, or the contract's. The install's
-- request without a permit may count in it, too.
local function assume(limit)
  s.limit, s.used, s.base = math.min(limit or s.limit or call.limit, call.limit), 0, 0
  s.ours = in_flight() + 2
  s.reset, s['end'] = nil, now + call.windowMs
end

-- Whether this route alone fails: another one succeeded since its last error.
local function is_of_route()
  local before = s.errors[route]
  s.errors[route] = now
  return before ~= nil and s.good_at ~= nil and s.good_at > before
end

local function block(asked_ms, of)
  -- Requests that are refused together are one refusal.
  if math.max(s.blocked or 0, s.blocks[name] or 0) <= now then s.refusals = (s.refusals or 0) + 1 end
  local shortest = math.min(FIRST_BLOCK_MS * 2 ^ math.min((s.refusals or 1) - 1, 20), LONGEST_BLOCK_MS)
  local length = math.max(asked_ms, shortest)
  if of == 'company' then
    s.blocked = math.max(s.blocked or 0, now + length)
    return
  end
  s.blocks[name] = math.max(s.blocks[name] or 0, now + length)
  if of == 'error' and not is_of_route() then
    s.blocked = math.max(s.blocked or 0, now + math.min(length, ERROR_MS))
  end
  if of == 'bucket' and not bucket then s.paces[route] = { ends = now + PACED_MS, last = now } end
end

local function release(done)
  local held = redis.call('ZREM', flight, done.permit) == 1
  if done.unsent then
    if held then s.ours = s.ours - 1 end
    if bucket then redis.call('ZREM', entries, done.permit) end
    return
  end
  if not done.answered then
    if held then lose(1) end
    return
  end
  if bucket then redis.call('ZADD', entries, 'XX', now, done.permit) end
  -- After the end of the lease, the window of the answer may be over. A refusal may come from a proxy.
  if done.rate and (held or done.permit == '') then learn(done.rate)
  elseif held and not done.refused and not is_known() then assume(done.limit) end
  if done.block then block(done.block.forMs, done.block.of)
  elseif not done.refused then s.refusals, s.good_at = nil, now end
end

-- The bucket holds requests in flight and those answered within the guard's window. So no window of the service holds more,
-- wherever it begins.
local function wait_for_guard()
  redis.call('ZREMRANGEBYSCORE', entries, '-inf', now - bucket.windowMs - 1)
  local limit = bucket.share and math.max(1, math.floor(bucket.limit * (s.limit or call.limit))) or bucket.limit
  local over = redis.call('ZCARD', entries) - limit
  if over < 0 then return 0 end
  local leaves = tonumber(redis.call('ZRANGE', entries, over, over, 'WITHSCORES')[2])
  return math.min(leaves, now) + bucket.windowMs + 1 - now
end

local function wait_for_pace()
  local pace = s.paces[route]
  if bucket or not pace or now >= pace.ends then return 0 end
  return pace.last + math.ceil((s.length or call.windowMs) / (s.limit or call.limit)) - now
end

-- One request explores an unknown window. After a window that has just ended, a few may.
local function wait_for_probe()
  local probes = redis.call('ZCOUNT', flight, now + call.leaseMs - PROBE_MS, '+inf')
  local is_rolled = s.reset ~= nil and now - s['end'] < call.windowMs
  return probes < (is_rolled and math.max(1, math.floor(s.limit / ROLLED_OF)) or 1) and 0 or ASK_MS
end

local function wait_for_limit()
  local left, flying = s['end'] - now, in_flight()
  -- Another app may have one more request in flight, and may have spent the reserved permits by the end (bench: shared).
  local is_shared = s.others_at ~= nil and now - s.others_at < SHARED_MS
  local most = s.limit - (is_shared and 1 or 0)
  local free = math.min(most - s.used - flying, most - s.ours)
  local people = math.min(call.reserved.people, math.floor(s.limit / RESERVED_OF))
  local reserved = people + math.floor(s.limit * call.reserved.share)
  if left <= OPEN_MS and not is_shared then reserved = 0 end
  if free > reserved then return 0 end
  -- `used` may include requests in flight: until their answers they count twice.
  if flying > 0 and math.min(most - s.used, most - s.ours) > reserved then return math.min(left, ASK_MS) end
  return free > 0 and left > OPEN_MS and not is_shared and left - OPEN_MS or left
end

local function wait()
  local blocked = math.max(s.blocked or 0, s.blocks[name] or 0)
  if blocked > now then return blocked - now, 'blocked' end
  local guard = math.max(bucket and wait_for_guard() or 0, wait_for_pace())
  if guard > 0 then return guard, 'guard' end
  return is_known() and wait_for_limit() or not is_known() and wait_for_probe() or 0, 'limit'
end

if call.release then release(call.release) end
local wait_ms, why = 0, ''
if call.acquire then
  wait_ms, why = wait()
  if wait_ms <= 0 then
    s.ours = s.ours + 1
    if s.paces[route] then s.paces[route].last = now end
    redis.call('ZADD', flight, now + call.leaseMs, call.acquire)
    redis.call('PEXPIRE', flight, call.leaseMs)
    if bucket then
      redis.call('ZADD', entries, now + call.leaseMs, call.acquire)
      redis.call('PEXPIRE', entries, call.leaseMs + bucket.windowMs + 1)
    end
  end
end

local stays = IDLE_MS
for other, ends in pairs(s.blocks) do
  if ends <= now then s.blocks[other] = nil else stays = math.max(stays, ends - now) end
end
redis.call('SET', state, cjson.encode(s), 'PX', string.format('%.0f', stays))
return { math.max(0, math.ceil(wait_ms)), why }
