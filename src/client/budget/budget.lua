-- The rate budget of one company: one script decides, for every process, when a request may go.
--
-- KEYS[1] hash: what the service's answers said about the current window
--   end       our moment of the window's end, in ms of Redis' clock; beyond it nothing is known
--   reset     the service's moment of it, in ms: names the window, so that late answers are told apart
--   remaining the smallest that this window's answers said
--   limit, burst   as last said
--   blocked, blocked:<route>   until when the service wants no request, in ms of Redis' clock
--   refused   refusals in a row
--   probe     the one permit out while nothing is known
-- KEYS[2] sorted set: permits in flight, by the moment at which their lease ends
-- KEYS[3] sorted set: permits that ended without a word about the limit, by the moment at which they did
--
-- ARGV: settle permit, outcome ('' | answered | bare | lost), limit, remaining, reset, ends in, burst remaining,
--       block for, block route, acquire permit (empty: none), route, lease, window and limit of the contract,
--       permits kept for people
--
-- Times and waits are whole milliseconds, waits rounded up: a number that Lua returns is cut.

local SAME_WINDOW_MS = 1500    -- resets of one window may differ by rounding
local PROBE_PAUSE_MS = 40      -- how soon to ask again while a probe is out
local LONGEST_PAUSE_MS = 30000 -- longest pause that refusals in a row add up to
local RELEASE_MS = 2000        -- what is kept for people goes to the sync so long before the window's end
local KEPT_OF = 20             -- of so many permits at least, one may be kept
local KEEP_MS = 30 * 60 * 1000 -- how long an idle company's budget is kept

local state, flight, unheard = KEYS[1], KEYS[2], KEYS[3]
local lease = tonumber(ARGV[12])
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
    local remaining = tonumber(ARGV[4]) - math.max(0, limit - tonumber(ARGV[14])) - missed
    local current = get('reset')
    local newer = current == nil or reset > current + SAME_WINDOW_MS
    local same = current ~= nil and math.abs(reset - current) <= SAME_WINDOW_MS
    if known() and same then
      redis.call('HSET', state, 'remaining', math.min(get('remaining'), remaining), 'end', math.min(get('end'), ends))
    elseif newer or (probed and not known()) then
      redis.call('HSET', state, 'remaining', remaining, 'reset', reset, 'end', ends)
    end
    if newer or same then
      redis.call('HSET', state, 'limit', math.min(limit, tonumber(ARGV[14])))
      if ARGV[7] ~= '' then redis.call('HSET', state, 'burst', ARGV[7]) end
    end
  elseif outcome == 'bare' and probed and not known() then
    -- A service that says nothing about its limit: the contract's, in a window that starts now. Besides this
    -- request it may have counted the one that asked whose token it is.
    local remaining = tonumber(ARGV[14]) - 2 - missed
    redis.call('HSET', state, 'remaining', remaining, 'limit', ARGV[14], 'end', now + tonumber(ARGV[13]))
    redis.call('HDEL', state, 'reset')
  elseif held then
    spend(permit)
  end

  local block = tonumber(ARGV[8])
  if block > 0 then
    local refused = redis.call('HINCRBY', state, 'refused', 1)
    local pause = math.min(50 * 2 ^ math.min(refused - 1, 20), LONGEST_PAUSE_MS)
    local field = ARGV[9] == '' and 'blocked' or ('blocked:' .. ARGV[9])
    redis.call('HSET', state, field, math.max(get(field) or 0, now + math.ceil(math.max(block, pause))))
  elseif outcome == 'answered' then
    redis.call('HDEL', state, 'refused')
  end
end

local granted, wait, why = 0, 0, ''
if ARGV[10] ~= '' then
  local permit, route = ARGV[10], ARGV[11]
  local blocked = math.max(get('blocked') or 0, get('blocked:' .. route) or 0)
  if blocked > now then
    wait, why = blocked - now, 'blocked'
  elseif known() then
    local free, left = get('remaining') - redis.call('ZCARD', flight), get('end') - now
    local kept = left > RELEASE_MS and math.min(tonumber(ARGV[15]), math.floor(get('limit') / KEPT_OF)) or 0
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
  if granted == 1 then redis.call('ZADD', flight, now + lease, permit) end
end

redis.call('PEXPIRE', state, KEEP_MS)
redis.call('PEXPIRE', flight, KEEP_MS)
redis.call('PEXPIRE', unheard, KEEP_MS)
return { granted, math.ceil(wait), why }
