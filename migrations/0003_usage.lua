-- Each shard stores the usage of its owners, so that reading it needs no sum over
-- all resources. This migration adds up the existing resources.
--
--   usage                  hash    <owner> -> "<resources> <bytes>", and "*" -> the sum of
--                                  all owners; expires with due

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
