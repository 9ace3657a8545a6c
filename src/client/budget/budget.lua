-- The rate budget of one company: one script decides, for every process, when a request may go.
--
-- KEYS[1] hash: what the service's answers said about the current window
--   end       our moment of the window's end, in ms of Redis' clock; beyond it nothing is known
--   reset     the service's moment of it, in ms: names the window, so that late answers are told apart
--   remaining the smallest that this window's answers said
--   limit, burst   as last said
--   blocked   until when the service wants no request of the company, in ms of Redis' clock
--   refused   refusals in a row
--   probe     the one permit out while nothing is known
-- KEYS[2] sorted set: permits in flight, by the moment at which their lease ends
-- KEYS[3] sorted set: permits that ended without a word about the limit, by the moment at which they did
-- KEYS[4] sorted set: requests in the bucket of a guard, by the moment at which they were answered; those that were
--         not, by the end of their lease
-- KEYS[5] string: until when the service wants no request of this bucket (of this route, where we know of no guard)
--
-- ARGV: settle permit, outcome ('' | answered | bare | lost | unsent), limit, remaining, reset, ends in,
--       burst remaining, block for, what is blocked ('' | company | bucket), acquire permit (empty: none),
--       lease, window and limit of the contract, permits kept for people,
--       the bucket's limit (empty: there is no bucket) and window, '1' if that limit is a share of the rate limit
--
-- Times and waits are whole milliseconds, waits rounded up: a number that Lua returns is cut.

local SAME_WINDOW_MS = 1500    -- resets of one window may differ by rounding
local PROBE_PAUSE_MS = 40      -- how soon to ask again while a probe is out
local LONGEST_PAUSE_MS = 30000 -- longest pause that refusals in a row add up to
local RELEASE_MS = 2000        -- what is kept for people goes to the sync so long before the window's end
local KEPT_OF = 20             -- of so many permits at least, one may be kept
local KEEP_MS = 30 * 60 * 1000 -- how long an idle company's budget is kept

local state, flight, unheard, bucket, bucket_blocked = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local lease = tonumber(ARGV[11])
local window, most = tonumber(ARGV[12]), tonumber(ARGV[13])
local guarded = ARGV[15] ~= ''
local guard_window = guarded and tonumber(ARGV[16])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.ceil(time[2] / 1000)

local function get(field) return tonumber(redis.call('HGET', state, field) or nil) end
local function known() local e = get('end'); return e ~= nil and now < e end

-- The request may have been sent, so it counts as spent: in the window that we know, and in the one that an answer
-- to an earlier request is yet to tell us of.
local function spend(permit)
  redis.call('ZADD', unheard, now, permit)
  if known() then redis.call('HINCRBY', state, 'remaining', -1) end
end

-- How long until one more request fits into the guard's bucket. So many requests as the guard allows may be on their
-- way or answered for less than its window: then no window of the service holds more, fixed or sliding and wherever it
-- begins, as the service counts a request between the moments at which it is granted and answered.
local function wait_for_guard()
  local allowed = tonumber(ARGV[15])
  if ARGV[17] == '1' then allowed = math.max(1, math.floor(allowed * (get('limit') or most))) end
  redis.call('ZREMRANGEBYSCORE', bucket, '-inf', now - guard_window - 1)
  local over = redis.call('ZCARD', bucket) - allowed
  if over < 0 then return 0 end
  -- Whoever asks again then finds the place free, or that it is still on its way.
  local leaves = redis.call('ZRANGE', bucket, over, over, 'WITHSCORES')[2]
  return math.min(tonumber(leaves), now) + guard_window + 1 - now
end

-- A lease that ran out: its holder died.
for _, permit in ipairs(redis.call('ZRANGEBYSCORE', flight, '-inf', now)) do
  redis.call('ZREM', flight, permit)
  spend(permit)
end
redis.call('ZREMRANGEBYSCORE', unheard, '-inf', now - lease)
local probe = redis.call('HGET', state, 'probe')
if probe and not redis.call('ZSCORE', flight, probe) then
  redis.call('HDEL', state, 'probe')
  probe = false
end

local outcome = ARGV[2]
if outcome ~= '' then
  local permit = ARGV[1]
  local ends_at = redis.call('ZSCORE', flight, permit)
  local held = redis.call('ZREM', flight, permit) == 1
  -- Requests that the service may have counted after this one, and that no answer will tell of.
  local sent_at = held and tonumber(ends_at) - lease or now - lease
  local missed = redis.call('ZCOUNT', unheard, sent_at, '+inf')
  local probed = probe == permit
  if probed then redis.call('HDEL', state, 'probe'); probe = false end

  if outcome == 'answered' then
    local limit, reset, ends = tonumber(ARGV[3]), tonumber(ARGV[5]), now + tonumber(ARGV[6])
    -- The contract's limit is the ceiling, whatever more the service would allow.
    local remaining = tonumber(ARGV[4]) - math.max(0, limit - most) - missed
    local current = get('reset')
    local newer = current == nil or reset > current + SAME_WINDOW_MS
    local same = current ~= nil and math.abs(reset - current) <= SAME_WINDOW_MS
    if known() and same then
      redis.call('HSET', state, 'remaining', math.min(get('remaining'), remaining), 'end', math.min(get('end'), ends))
    elseif newer or (probed and not known()) then
      redis.call('HSET', state, 'remaining', remaining, 'reset', reset, 'end', ends)
    end
    if newer or same then
      redis.call('HSET', state, 'limit', math.min(limit, most))
      if ARGV[7] ~= '' then redis.call('HSET', state, 'burst', ARGV[7]) end
    end
  elseif outcome == 'bare' and probed and not known() then
    -- A service that says nothing about its limit: the contract's, in a window that starts now. Besides this
    -- request it may have counted the one that asked whose token it is.
    local remaining = most - 2 - missed
    redis.call('HSET', state, 'remaining', remaining, 'limit', most, 'end', now + window)
    redis.call('HDEL', state, 'reset')
  elseif held and outcome ~= 'unsent' then
    spend(permit)
  end

  -- One that got no answer keeps its place until its lease ends: the service may count it yet.
  if guarded and outcome == 'unsent' then
    redis.call('ZREM', bucket, permit)
  elseif guarded and outcome ~= 'lost' then
    redis.call('ZADD', bucket, 'XX', now, permit)
  end

  local block = tonumber(ARGV[8])
  if block > 0 then
    local whole = ARGV[9] == 'company'
    local blocked = whole and (get('blocked') or 0) or tonumber(redis.call('GET', bucket_blocked) or 0)
    -- Requests that were on their way together are refused together: that is one refusal.
    local refused = get('refused') or 1
    if blocked <= now then refused = redis.call('HINCRBY', state, 'refused', 1) end
    local pause = math.min(50 * 2 ^ math.min(refused - 1, 20), LONGEST_PAUSE_MS)
    local over_at = now + math.ceil(math.max(block, pause))
    if whole then
      redis.call('HSET', state, 'blocked', math.max(blocked, over_at))
    elseif over_at > blocked then
      redis.call('SET', bucket_blocked, over_at, 'PX', over_at - now)
    end
  elseif outcome == 'answered' then
    redis.call('HDEL', state, 'refused')
  end
end

local granted, wait, why = 0, 0, ''
if ARGV[10] ~= '' then
  local permit = ARGV[10]
  local blocked = math.max(get('blocked') or 0, tonumber(redis.call('GET', bucket_blocked) or 0))
  local guard_wait = guarded and wait_for_guard() or 0
  if blocked > now then
    wait, why = blocked - now, 'blocked'
  elseif guard_wait > 0 then
    wait, why = guard_wait, 'guard'
  elseif known() then
    local free, left = get('remaining') - redis.call('ZCARD', flight), get('end') - now
    local kept = left > RELEASE_MS and math.min(tonumber(ARGV[14]), math.floor(get('limit') / KEPT_OF)) or 0
    if free > kept then
      granted = 1
    else
      wait, why = free > 0 and left - RELEASE_MS or left, 'limit'
    end
  elseif probe then
    wait, why = PROBE_PAUSE_MS, 'probe'
  else
    -- Nothing is known about this window: one request goes and finds out.
    redis.call('HSET', state, 'probe', permit)
    granted = 1
  end
  if granted == 1 then
    redis.call('ZADD', flight, now + lease, permit)
    if guarded then
      redis.call('ZADD', bucket, now + lease, permit)
      redis.call('PEXPIRE', bucket, lease + guard_window + 1)
    end
  end
end

redis.call('PEXPIRE', state, KEEP_MS)
redis.call('PEXPIRE', flight, KEEP_MS)
redis.call('PEXPIRE', unheard, KEEP_MS)
return { granted, math.ceil(wait), why }
