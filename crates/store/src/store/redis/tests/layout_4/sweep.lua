-- Publishes the expiries of a shard. Returns the milliseconds until the next one,
-- or -1 if the shard has no resources left.
local due = env.shard .. 'due'
local left = batch
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', digits(env.now), 'LIMIT', 0, batch)) do
  if left <= 0 then
    break
  end
  local index = index_of(env, owner)
  -- Each owner counts as one more, so that a run over many owners is short, too.
  left = left - 1 - prune(index, left)
  save_index(index)
end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
return { 'done', first and math.max(tonumber(first) - env.now, 0) or -1 }
