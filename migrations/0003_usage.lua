-- What the owners of a shard have together is kept with it, so that nobody has to
-- add it up: what is there already is added up here.
--
--   usage                  hash    <owner> -> "<resources> <bytes>", and "*" -> the same of
--                                  all; expires with due
local all_resources, all_bytes = 0, 0
for _, owner in ipairs(redis.call('ZRANGE', shard .. 'due', 0, -1)) do
  local resources = redis.call('ZCARD', shard .. 'names:' .. owner)
  local bytes = tonumber(redis.call('HGET', shard .. 'sizes:' .. owner, '') or '0')
  if resources > 0 then
    redis.call('HSET', shard .. 'usage', owner, string.format('%.0f %.0f', resources, bytes))
    all_resources, all_bytes = all_resources + resources, all_bytes + bytes
  end
end
if all_resources > 0 then
  redis.call('HSET', shard .. 'usage', '*', string.format('%.0f %.0f', all_resources, all_bytes))
  redis.call('PEXPIRE', shard .. 'usage', redis.call('PTTL', shard .. 'due'))
end
