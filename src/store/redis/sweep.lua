-- Tells what has expired in a shard, and when there is something to tell next.
local due = env.shard .. 'due'
local left = batch
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', digits(env.now), 'LIMIT', 0, batch)) do
  if left <= 0 then
    break
  end
  local index = index_of(env, owner)
  -- So that many owners with little are a batch as well.
  left = left - 1 - prune(index, left)
  settle(index)
end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
return { 'done', first and math.max(tonumber(first) - env.now, 0) or -1 }
