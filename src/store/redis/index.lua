-- What the other scripts share; it stands before each of them.
-- migrations/0001_resources.lua says what the keys are.

-- The index of an owner. `env` has: shard, channel, linger, now.
local function index_of(env, owner)
  return {
    env = env,
    owner = owner,
    names = env.shard .. 'names:' .. owner,
    expiries = env.shard .. 'expiries:' .. owner,
    sizes = env.shard .. 'sizes:' .. owner,
    due = env.shard .. 'due',
    usage = env.shard .. 'usage',
  }
end

local function entry_key(index, uri)
  return index.env.shard .. 'entry:' .. index.owner .. ':' .. uri
end

-- Says what happened, how long the resource lives from now on (of one that has
-- expired: when, in milliseconds since 1970), and when it happened, to the
-- microsecond: that tells it from any other change.
local function tell(index, kind, uri, life)
  local now = redis.call('TIME')
  local at = now[1] .. '.' .. now[2]
  local message = kind .. ' ' .. digits(life) .. ' ' .. at .. ' ' .. index.owner .. ' ' .. uri
  redis.call('PUBLISH', index.env.channel, message)
end

-- Takes a resource out of the index.
local function forget(index, uri)
  redis.call('ZREM', index.names, uri)
  redis.call('ZREM', index.expiries, uri)
  local size = tonumber(redis.call('HGET', index.sizes, uri) or '0')
  redis.call('HDEL', index.sizes, uri)
  -- Not the negated size: of nothing that is -0, which is no integer there.
  redis.call('HINCRBY', index.sizes, '', digits(0 - size))
end

-- Takes out of the index what has expired, at most so many, and tells it: so
-- each expiry is told once, by whoever comes first. Says how many.
local function prune(index, most)
  local gone = redis.call('ZRANGEBYSCORE', index.expiries, '-inf', digits(index.env.now),
    'WITHSCORES', 'LIMIT', 0, most)
  for i = 1, #gone, 2 do
    local uri = gone[i]
    redis.call('DEL', entry_key(index, uri))
    forget(index, uri)
    tell(index, 'expired', uri, tonumber(gone[i + 1]))
  end
  return #gone / 2
end

-- Brings what the shard's owners have together up to date with what this one
-- has now, by what it was counted with before. So what expired by itself, index
-- and all, is taken off when somebody settles that.
local function account(index)
  local resources = redis.call('ZCARD', index.names)
  local bytes = tonumber(redis.call('HGET', index.sizes, '') or '0')
  local counted = redis.call('HMGET', index.usage, index.owner, '*')
  local function read(usage)
    local before, after = string.match(usage or '0 0', '^(%d+) (%d+)$')
    return tonumber(before), tonumber(after)
  end
  local own_resources, own_bytes = read(counted[1])
  local all_resources, all_bytes = read(counted[2])
  all_resources = all_resources - own_resources + resources
  all_bytes = all_bytes - own_bytes + bytes
  if all_resources <= 0 then
    redis.call('DEL', index.usage)
    return
  end
  local all = digits(all_resources) .. ' ' .. digits(all_bytes)
  if resources == 0 then
    redis.call('HDEL', index.usage, index.owner)
    redis.call('HSET', index.usage, '*', all)
  else
    redis.call('HSET', index.usage, index.owner, digits(resources) .. ' ' .. digits(bytes), '*', all)
  end
end

-- Puts the owner down for the expiry that is next, and lets the index outlive
-- the last one by little.
local function settle(index)
  local first = redis.call('ZRANGE', index.expiries, 0, 0, 'WITHSCORES')[2]
  if not first then
    redis.call('ZREM', index.due, index.owner)
    redis.call('DEL', index.names, index.sizes)
    account(index)
    return
  end
  redis.call('ZADD', index.due, first, index.owner)
  local last = redis.call('ZREVRANGE', index.expiries, 0, 0, 'WITHSCORES')[2]
  local till = tonumber(last) + index.env.linger
  for _, key in ipairs({ index.names, index.expiries, index.sizes }) do
    redis.call('PEXPIREAT', key, digits(till))
  end
  account(index)
  for _, key in ipairs({ index.due, index.usage }) do
    if redis.call('PTTL', key) < till - index.env.now then
      redis.call('PEXPIREAT', key, digits(till))
    end
  end
end

-- The earlier revisions that are kept of a resource, oldest first, by what its
-- entry says of them: revision, id of the content and size of each.
local function past_of(field)
  local past = {}
  for revision, id, size in string.gmatch(field or '', '(%d+):([^: ]+):(%d+)') do
    past[#past + 1] = { revision = revision, id = id, size = tonumber(size) }
  end
  return past
end

local function past_key(index, uri, revision)
  return index.env.shard .. 'past:' .. index.owner .. ':' .. revision .. ':' .. uri
end

-- Leaves content to those who are reading it, for a little while.
local function retire(index, blob, grace)
  local key = index.env.shard .. 'blob:' .. blob
  if redis.call('PTTL', key) > grace then
    redis.call('PEXPIRE', key, digits(grace))
  end
end

-- Lets go of an earlier revision.
local function drop(index, uri, earlier, grace)
  redis.call('DEL', past_key(index, uri, earlier.revision))
  retire(index, earlier.id, grace)
end

-- Nothing is touched that is laid out in another way.
local layout = tonumber(redis.call('GET', KEYS[1]) or '0')
if layout ~= tonumber(ARGV[1]) then
  return { 'layout', layout }
end
local env = {
  shard = ARGV[2],
  channel = ARGV[3],
  linger = tonumber(ARGV[4]),
  now = time(),
}
-- How many are pruned before others get their turn.
local batch = tonumber(ARGV[5])
