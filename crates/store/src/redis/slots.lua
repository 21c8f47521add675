-- Replaces the content of a slot that still has the given version, and returns 1 if it did.
-- Arguments: the version, the new content, and the time to live (ms).
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if version ~= tonumber(ARGV[1]) then
  return 0
end
redis.call('HSET', KEYS[1], 'version', version + 1, 'content', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
