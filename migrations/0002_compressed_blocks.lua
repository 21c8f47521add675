-- Blocks may be compressed. So an entry's table of them says how long each is
-- as it is kept; what was there before is kept as it is.
--
--   entry:<owner>:<uri>
--       blocks             16 bytes a block: length (u32), length in the blob (u32),
--                          first line (u64), little-endian
--   blob:<id>              string  the blocks one after the other; one that is shorter
--                          there than its length is a zstd frame
--
-- sizes counts lengths of content, as before.
for _, owner in ipairs(redis.call('ZRANGE', shard .. 'due', 0, -1)) do
  for _, uri in ipairs(redis.call('ZRANGE', shard .. 'expiries:' .. owner, 0, -1)) do
    local entry = shard .. 'entry:' .. owner .. ':' .. uri
    local blocks = redis.call('HGET', entry, 'blocks')
    if blocks then
      local longer = {}
      for at = 1, #blocks, 12 do
        local length = blocks:sub(at, at + 3)
        longer[#longer + 1] = length .. length .. blocks:sub(at + 4, at + 11)
      end
      redis.call('HSET', entry, 'blocks', table.concat(longer))
    end
  end
end
