# What jq has and jaq does not; and what jaq does in another way.

# Paths.
def del(f): delpaths([path(f)]);
def to_entries: [keys_unsorted[] as $key | { key: $key, value: .[$key] }];
def from_entries:
  reduce .[] as $entry ({};
    . + { ($entry
            | if .key == null then .k // .name // .Name // .K // .Key else .key end)
        : ($entry | if has("value") then .value elif has("v") then .v else .Value end) });
def with_entries(f): to_entries | map(f) | from_entries;
def leaf_paths: paths(scalars);
def pick(paths):
  . as $value | reduce path(paths) as $path (null; setpath($path; $value | getpath($path)));
def walk(f):
  def deep: if type == "object" then map_values(deep) elif type == "array" then map(deep) else . end | f;
  deep;

# Streams.
def range($from; $to; $by):
  if any(($from, $to, $by); type != "number") then error("the bounds of a range must be numbers")
  elif $by == 0 then empty
  else range_by($from; $to; $by) end;
def range($from; $to): range($from; $to; 1);
def range($to): range(0; $to; 1);
def limit($n; f): if $n < 0 then f else limit_to($n; f) end;
def last(f): last_or_null(f);
def nth($n; f):
  if $n < 0 then error("an index must not be negative") else first(skip($n; f)) end;
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def JOIN($index; f): [.[] | [., $index[f]]];
def JOIN($index; stream; f): stream | [., $index[f]];
def JOIN($index; stream; f; join): stream | [., $index[f]] | join;
def tostream:
  path(def r: (.[]? | r), .; r) as $p
  | getpath($p)
  | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f):
  { x: null, e: false } as $init
  | foreach f as $i
      ( $init;
        if .e then $init else . end
        | if $i | length == 2
          then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
          else setpath(["e"]; $i[0] | length == 1) end;
        if .e then .x else empty end
      );
def truncate_stream(stream):
  . as $n | null | stream | . as $input
  | if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;

# Surroundings. The process of a filter has no environment and no files.
def env: {};
def input_filename: null;
def have_literal_numbers: true;
def have_decnum: true;
def gamma: lgamma;

# Lists.
def flatten_by($depth):
  reduce .[] as $item ([];
    if ($item | type) == "array" and $depth != 0 then . + ($item | flatten_by($depth - 1))
    else . + [$item] end);
def flatten($depth):
  if $depth < 0 then error("the depth of flatten must not be negative") else flatten_by($depth) end;
def flatten: flatten_by(-1);
def reverse:
  if type == "array" then reverse_list else [.[length - 1 - range(0; length)]] end;
def combinations:
  if length == 0 then [] else .[0][] as $first | (.[1:] | combinations) as $more | [$first] + $more end;
def combinations(n): . as $list | [range(n)] | map($list) | combinations;

# Regular expressions, whose flags may come with them in a list.
def re_of: if type == "array" then .[0] else . end;
def flags_of: if type == "array" then .[1] // "" else "" end;
def named_captures: map(select(.name) | { (.name): .string }) | add + {};
def match($re; $flags):
  matches($re; $flags // "")[] | .[0] + { captures: .[1:] } | { offset, length, string, captures };
def match($re): match($re | re_of; $re | flags_of);
def test($re; $flags): matches($re; $flags // "") | any;
def test($re): test($re | re_of; $re | flags_of);
def capture($re; $flags): matches($re; $flags // "")[] | .[1:] | named_captures;
def capture($re): capture($re | re_of; $re | flags_of);
def scan($re; $flags):
  matches($re; "g" + $flags)[] | map(.string) | if length > 1 then .[1:] else .[0] end;
def scan($re): scan($re; null);
def sub_all($re; f; $flags):
  . as $text
  | split_matches($re; $flags) as $parts
  | if $parts | length == 1 then .
    else
      ( reduce range(0; ($parts | length) - 1; 2) as $at ([];
          [$parts[$at + 1][1:] | named_captures | f] as $new
          | reduce range($new | length) as $n (.; .[$n] += $parts[$at] + $new[$n]))
        | .[] + $parts[-1]
      ) // $text
    end;
def sub($re; f; $flags): sub_all($re; f; $flags);
def sub($re; f): sub_all($re; f; "");
def gsub($re; f; $flags): sub_all($re; f; "g" + $flags);
def gsub($re; f): sub_all($re; f; "g");
def split($re; $flags): split_($re; "g" + ($flags // ""));
def splits($re; $flags): split($re; $flags)[];
def splits($re): splits($re; null);

# Times. jq cuts off fractions of seconds.
def gmtime:
  . as $time | trunc | gmtime_whole | if $time == ($time | floor) then . else .[5] += $time - ($time | floor) end;
def whole_seconds: if type == "number" then trunc elif type == "array" then .[5] |= floor else . end;
def plain_format:
  if type == "string" then
    gsub("%(?<of>[%cxXr])"; if .of == "c" then "%a %b %e %H:%M:%S %Y" elif .of == "x" then "%m/%d/%y"
      elif .of == "X" then "%H:%M:%S" elif .of == "r" then "%I:%M:%S %p" else "%%" end)
  else . end;
def mktime: whole_seconds | mktime_whole;
def strftime($format): whole_seconds | strftime_whole($format | plain_format);
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def todate: todateiso8601;
def date: todate;

# Texts.
def ltrimstr($s): if type == "string" and ($s | type) == "string" then ltrim_text($s) else . end;
def rtrimstr($s): if type == "string" and ($s | type) == "string" then rtrim_text($s) else . end;
def trimstr($s): ltrimstr($s) | rtrimstr($s);
def toarray: if type == "array" then . else [.] end;
def toboolean:
  if isboolean then . elif . == "true" then true elif . == "false" then false
  else error("it cannot be parsed as a boolean") end;
def join($s):
  reduce .[] as $x (null;
    (if . == null then "" else . + $s end)
    + ($x | if . == null then "" elif isboolean or isnumber then tojson else . end)) // "";
def implode:
  if type == "array" then . else error("implode input must be an array") end
  | map(
    if type != "number" then error("a code point must be a number")
    else trunc end
    | if . < 0 or . > 1114111 or (. >= 55296 and . < 57344) then 65533
    else . end)
  | implode_valid;
def ascii: [.] | implode;
def @base64d: tostring | from_base64;
def @base32: tostring | to_base32;
def @base32d: tostring | from_base32;

def table_cell(f):
  if type == "string" then f
  elif . == null or (type == "number" and isnan) then ""
  elif type == "array" or type == "object" then error("a list or an object is not valid in a row")
  else tostring end;
def table_row: if type == "array" then . else error("a row must be a list") end;
def @csv: table_row | map(table_cell("\"" + (split("\"") | join("\"\"")) + "\"")) | join(",");
def @tsv:
  table_row
  | map(table_cell(
      split("\\") | join("\\\\") | split("\t") | join("\\t") | split("\n") | join("\\n") | split("\r") | join("\\r")
    ))
  | join("\t");
