-- The rate budget of one company: releases one permit and grants the next, for every process (Limits).
--
-- KEYS[1] string, JSON: the state. Times are milliseconds of Redis' clock.
--   limit, used   what the window's answers said; they come in any order, so the highest use counts
--   ours          permits granted in this window; `base`: the use beyond ours that was seen in it. Limit 120, remaining
--                 100 and 12 permits of ours: used is 20, ours 12, base 8, so another app sent 8
--   reset, end    the service's time of the window's end, which names the window; and ours
--   length        the longest window so far
--   burst         as last said
--   others_at     when somebody else last used the limit
--   blocked       until when no request of the company may go; `blocks`: of a bucket or a route
--   refusals      in a row; `troubles`: the last one of each route; `well`: the last good answer. They tell the trouble of
--                 one route from an outage
--   paces         of each route that an unknown guard has refused: until when it is paced, and its last request
-- KEYS[2] sorted set: permits in flight, by the end of their lease
-- KEYS[3] sorted set: requests in the guard's bucket, by the time of their answer, or else by the end of their lease
-- ARGV[1] JSON: see `Call` in budget.ts
--
--   unknown ── first answer ──▶ known ── its end passes ──▶ unknown
--   (one probe in flight)       (limit less use less flight)

local SAME_WINDOW_MS = 1500   -- resets of one window differ by rounding
local PROBE_MS = 2000         -- the holder of an older probe may be dead
local ASK_MS = 25             -- how soon to ask again for what answers under way will tell
local ROLLED_OF = 60          -- one permit of so many may go into the next window before it is known (bench: calm-600)
local RELEASE_MS = 3000       -- kept permits are free for all so long before the window's end
local KEPT_OF = 20            -- of so many permits, one may be kept for people
local SHARED_MS = 600000      -- how long a permit is held back after somebody else has used the limit
local PACED_MS = 600000       -- how long a route is paced after an unknown guard's refusal
local FIRST_BLOCK_MS = 50     -- the shortest block; it doubles with every refusal in a row
local LONGEST_BLOCK_MS = 30000 -- and ends here, unless the service asks for more
local TROUBLE_MS = 60000      -- how long one route's trouble holds up the company
local KEEP_MS = 1800000       -- how long an idle company's state is kept

local state, flight, entries = KEYS[1], KEYS[2], KEYS[3]
local call = cjson.decode(ARGV[1])
local route, bucket = call.route, call.bucket
local name = bucket and bucket.name or route

local time = redis.call('TIME')
local now = time[1] * 1000 + math.ceil(time[2] / 1000)
local s = cjson.decode(redis.call('GET', state) or '{}')
s.blocks, s.paces, s.troubles, s.ours = s.blocks or {}, s.paces or {}, s.troubles or {}, s.ours or 0

-- The service may count a request without an answer. It stays among ours. Where another app uses the limit, ours says too
-- little, so the request counts as used.
local function lose(requests)
  if s.used ~= nil and s.used > s.ours then s.used = s.used + requests end
end

-- The holders of leases that ran out died.
lose(redis.call('ZREMRANGEBYSCORE', flight, '-inf', now))
local function in_flight() return redis.call('ZCARD', flight) end

-- An end that no window has comes of a clock that was set.
local function is_known()
  return s['end'] ~= nil and now < s['end'] and s['end'] - now <= call.window + 1000
end

-- What an answer says about its window.
local function hear(rate)
  local used = math.max(0, rate.limit - rate.remaining)
  local ends_at = now + rate.ends_in
  if s.reset ~= nil and math.abs(rate.reset - s.reset) <= SAME_WINDOW_MS then
    s.used = math.max(s.used, used)
    s['end'] = is_known() and math.min(s['end'], ends_at) or ends_at
  elseif s.reset ~= nil and is_known() and rate.reset < s.reset then
    return -- of the window before
  else
    s.used, s.reset, s['end'] = used, rate.reset, ends_at
    -- Those in flight may count in this window or in the one before.
    s.ours = in_flight() + 1
    s.base = math.max(0, used - s.ours)
    s.length = math.max(s.length or 0, rate.ends_in)
  end
  s.limit, s.burst = math.min(rate.limit, call.limit), rate.burst or s.burst
  if used - s.ours > s.base then s.base, s.others_at = used - s.ours, now end
end

-- A service that says nothing about its window: one begins now, with the limit that it tells, or the contract's. The
-- request that asked for the company's id may count in it, too. A refusal may come of a proxy, and says nothing.
local function assume(limit)
  s.limit, s.used, s.base = math.min(limit or s.limit or call.limit, call.limit), 0, 0
  s.ours = in_flight() + 2
  s.reset, s['end'] = nil, now + call.window
end

-- Whether trouble is this route's alone: others were answered well since it began.
local function is_of_route()
  local before = s.troubles[route]
  s.troubles[route] = now
  return before ~= nil and s.well ~= nil and s.well > before
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
  if of == 'trouble' and not is_of_route() then
    s.blocked = math.max(s.blocked or 0, now + math.min(length, TROUBLE_MS))
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
  -- After the end of the lease, the window of the answer may be over.
  if done.rate and (held or done.unasked) then hear(done.rate)
  elseif held and not done.refused and not is_known() then assume(done.limit) end
  if done.block then block(done.block.ms, done.block.of)
  elseif not done.refused then s.refusals, s.well = nil, now end
end

-- How long until the guard's bucket has room. The bucket holds requests in flight, and those answered within the guard's
-- window. So no window of the service holds more, wherever it begins.
local function wait_for_guard()
  redis.call('ZREMRANGEBYSCORE', entries, '-inf', now - bucket.window - 1)
  local limit = bucket.share and math.max(1, math.floor(bucket.limit * (s.limit or call.limit))) or bucket.limit
  local over = redis.call('ZCARD', entries) - limit
  if over < 0 then return 0 end
  local leaves = tonumber(redis.call('ZRANGE', entries, over, over, 'WITHSCORES')[2])
  return math.min(leaves, now) + bucket.window + 1 - now
end

local function wait_for_pace()
  local pace = s.paces[route]
  if bucket or not pace or now >= pace.ends then return 0 end
  return pace.last + math.ceil((s.length or call.window) / (s.limit or call.limit)) - now
end

-- Nothing is known: one request finds out. A window that has just ended tells enough for a few.
local function wait_for_probe()
  local probes = redis.call('ZCOUNT', flight, now + call.lease - PROBE_MS, '+inf')
  local is_rolled = s.reset ~= nil and now - s['end'] < call.window
  return probes < (is_rolled and math.max(1, math.floor(s.limit / ROLLED_OF)) or 1) and 0 or ASK_MS
end

local function wait_for_limit()
  local left, flying = s['end'] - now, in_flight()
  -- Another app that uses the limit may have one more request in flight, and may have spent the kept permits by the
  -- window's end (bench: shared).
  local is_shared = s.others_at ~= nil and now - s.others_at < SHARED_MS
  local most = s.limit - (is_shared and 1 or 0)
  local free = math.min(most - s.used - flying, most - s.ours)
  local kept = math.min(call.kept, math.floor(s.limit / KEPT_OF)) + math.floor(s.limit * call.share)
  if left <= RELEASE_MS and not is_shared then kept = 0 end
  if free > kept then return 0 end
  -- What the answers say is used may hold those in flight: they count twice until they are answered.
  if flying > 0 and math.min(most - s.used, most - s.ours) > kept then return math.min(left, ASK_MS) end
  return free > 0 and left > RELEASE_MS and not is_shared and left - RELEASE_MS or left
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
    redis.call('ZADD', flight, now + call.lease, call.acquire)
    redis.call('PEXPIRE', flight, call.lease)
    if bucket then
      redis.call('ZADD', entries, now + call.lease, call.acquire)
      redis.call('PEXPIRE', entries, call.lease + bucket.window + 1)
    end
  end
end

local keep = KEEP_MS
for other, ends in pairs(s.blocks) do
  if ends <= now then s.blocks[other] = nil else keep = math.max(keep, ends - now) end
end
redis.call('SET', state, cjson.encode(s), 'PX', string.format('%.0f', keep))
return { math.max(0, math.ceil(wait_ms)), why }
