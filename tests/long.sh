# shellcheck shell=bash
# Sourced by ./test: the campaigns. Each leaves its figures in docs/proof/report/<campaign>.md, where
# they stay until it runs again; docs/proof/REPORT.md is put together from all of them.

campaigns=(model differential mutants crashes histories interleavings fuzz cargo-mutants miri)
reports=docs/proof/report
logs=$(realpath -m "${CARGO_TARGET_DIR:-target}")/campaigns

# A filter that fits no test is a campaign that did nothing: cargo is content with that.
tested() {
  local said end=0
  said=$(mktemp)
  "$@" | tee "$said" || end=$?
  if [ "$end" -eq 0 ] && ! grep -aq '^test result: ok\. [1-9]' "$said"; then
    echo "no test has run: $*" >&2
    end=1
  fi
  rm "$said"
  return "$end"
}

long_test() {
  tested cargo test --profile campaign --no-fail-fast "$@" --nocapture
}

# One campaign; what it prints is kept in its log, what it reports in a file of its name.
run() {
  case $1 in
    model) long_test -p idem-model --test model -- in_a_long_run ;;
    differential) differential ;;
    mutants) mutants ;;
    crashes) long_test -p idem-tests --test crashes -- ;;
    histories) long_test -p idem-tests --test histories -- ;;
    interleavings) interleavings ;;
    fuzz) fuzz ;;
    cargo-mutants) mistakes ;;
    miri) interpreted ;;
  esac
}

# Each part runs, whichever fails, and each program by itself: beside others, one that runs nothing is
# not noticed. What makes histories shorter does not make these so.
differential() {
  unset IDEM_OPERATIONS
  local end=0 program
  for program in conformance redis sql; do
    long_test -p idem-tests --test "$program" -- random_histor || end=1
  done
  long_test -p idem-tests --test sql -- long_backlog || end=1
  return "$end"
}

# Three suites judge as programs of their own.
mutants() {
  cargo test --profile campaign -p idem-tests --test sql --test transaction --test schemes --no-run ||
    return
  long_test -p idem-tests --test mutants --
}

interleavings() {
  export IDEM_INTERLEAVINGS=${IDEM_INTERLEAVINGS:-200000}
  export SHUTTLE_RANDOM_SEED=${SHUTTLE_RANDOM_SEED:-$SRANDOM}
  long_test -p idem-interleavings -- nobody || return
  echo "$IDEM_INTERLEAVINGS interleavings of each scene, SHUTTLE_RANDOM_SEED=$SHUTTLE_RANDOM_SEED" \
    >>"$IDEM_REPORT/interleavings"
}

# Stable, through the entry points that cargo-fuzz has too: two million inputs of each kind.
fuzz() {
  export IDEM_INPUTS=${IDEM_INPUTS:-2000000} IDEM_SEED=${IDEM_SEED:-$SRANDOM}
  local end=0
  long_test -p idem-core --features fuzzing,postgres --lib -- every_reader || end=1
  long_test -p idem-macros --lib -- fuzzing::tests::every || end=1
  [ "$end" -eq 0 ] || return "$end"
  echo "each property held for $IDEM_INPUTS inputs, IDEM_SEED=$IDEM_SEED" >>"$IDEM_REPORT/fuzz"
}

# Only nightly has it. What is slow in it is made small: four cases of each property.
interpreted() {
  cargo +nightly miri --version ||
    rustup toolchain install nightly --profile minimal -c miri -c rust-src || return
  export PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation
  local end=0
  tested cargo +nightly miri test -p idem-core --no-default-features --features redis,postgres --lib -- \
    record:: key:: fingerprint:: token:: codec:: engine::decide policy:: \
    redis::reply:: redis::scan:: postgres::entered:: || end=$?
  echo "$(cargo +nightly miri --version); PROPTEST_CASES=$PROPTEST_CASES" >>"$IDEM_REPORT/miri"
  return "$end"
}

# By .cargo/mutants.toml, on a copy of the tree. The tool's own verdict takes every loop that never
# ends for a failure (3), and everything missed (2), known or not; here it is judged by its lists.
mistakes() {
  cargo mutants --version || cargo install --locked cargo-mutants@27.1.0 || return
  local end=0 list
  local -A count
  cargo mutants --jobs 2 --timeout 60 --output "$logs" || end=$?
  [[ $end =~ ^[023]$ ]] || return "$end"
  for list in caught missed timeout unviable; do
    count[$list]=$(wc -l <"$logs/mutants.out/$list.txt")
    echo "${count[$list]} $list" >>"$IDEM_REPORT/cargo-mutants"
  done
  sed 's/^/missed: /' "$logs/mutants.out/missed.txt" >>"$IDEM_REPORT/cargo-mutants"
  local found=$((count[caught] + count[timeout]))
  local share=$((100 * found / (found + count[missed])))
  echo "$share % of those that compile were found" >>"$IDEM_REPORT/cargo-mutants"
  explained "$logs/mutants.out/missed.txt" && [ "$share" -ge 95 ]
}

# Whether docs/proof/MISSED.md has a reason for each line of the list, whatever its place in the file.
explained() {
  local missed end=0
  while read -r missed; do
    grep -qF -- "\`$missed\`" docs/proof/MISSED.md && continue
    echo "missed without a reason: $missed" | tee -a "$IDEM_REPORT/cargo-mutants"
    end=1
  done < <(sed -E 's/:[0-9]+:[0-9]+:/:/' "$1")
  return "$end"
}

# Programs as they say it themselves; other servers are named by the campaign that fetches them.
versions() {
  local program
  for program in rustc redis-server /usr/lib/postgresql/*/bin/postgres mariadbd nats-server; do
    PATH="$PATH:/usr/sbin" "$program" --version 2>/dev/null || true
  done | sed -E 's/ (sha|malloc|bits|build)=[^ ]*//g' | paste -sd ';' | sed 's/;/; /g'
  dpkg-query -W -f '; RabbitMQ ${Version}' rabbitmq-server 2>/dev/null || true
}

# What is about to run: the commit, and whether it is all.
source_of_it() {
  git rev-parse --short HEAD
  if [ -n "$(git status --porcelain -- . ':!docs/proof')" ]; then
    echo ', with changes that are not committed'
  fi
}

# What a campaign was and came to, in Markdown.
page() {
  local campaign=$1 end=$2 seconds=$3 commit=$4
  printf '## %s: %s\n\n' "$campaign" "$([ "$end" -eq 0 ] && echo passed || echo FAILED)"
  printf 'Ended %s after %d min %d s, at commit %s.\n' "$(date -u '+%F %H:%M UTC')" \
    $((seconds / 60)) $((seconds % 60)) "$commit"
  printf '%s cores, %s GiB of memory, %s.\n\n' "$(nproc)" \
    "$(awk '/MemTotal/ { print int($2 / 1048576 + 0.5) }' /proc/meminfo)" "$(uname -srm)"
  printf '%s\n\n' "$(versions | tr -d '\n')"
  # Lines of a table stay as they are; every other one is an item.
  if [ -f "$IDEM_REPORT/$campaign" ]; then sed -E 's/^([^|])/- \1/' "$IDEM_REPORT/$campaign"; fi
  grep -ahE '^(test .* FAILED$|test result: )' "$logs/$campaign.log" | sort | uniq -c |
    sed -E 's/^ *([0-9]+) /- \1 × /; s/; finished in .*//' || true
}

assemble() {
  echo '# What the campaigns came to'
  echo
  echo 'Written by `./test --long`. Each campaign says when and on what it ran last; how it works,'
  echo 'and what it does not cover, is told in [README.md](README.md).'
  if [ -f docs/proof/FOUND.md ]; then
    echo 'What they found, and how it was fixed: [FOUND.md](FOUND.md).'
  fi
  echo
  local campaign
  for campaign in "${campaigns[@]}"; do
    if [ -f "$reports/$campaign.md" ]; then
      cat "$reports/$campaign.md"
    else
      printf '## %s: not run yet\n' "$campaign"
    fi
    echo
  done
}

# Runs a campaign, and writes its page.
one() {
  local campaign=$1 begin=$SECONDS end=0 commit
  commit=$(source_of_it | paste -sd '')
  run "$campaign" 2>&1 | tee "$logs/$campaign.log" || end=$?
  page "$campaign" "$end" $((SECONDS - begin)) "$commit" >"$reports/$campaign.md"
  return "$end"
}

# Miri has one thread for half an hour: beside others it takes what they leave.
beside() {
  renice -n 19 "$BASHPID" >/dev/null
  one "$1" >/dev/null
}

run_campaigns() {
  local campaign miri failed=0
  [ $# -gt 0 ] || set -- "${campaigns[@]}"
  for campaign in "$@"; do
    [[ " ${campaigns[*]} " == *" $campaign "* ]] && continue
    echo "no campaign $campaign; there are: ${campaigns[*]}" >&2
    return 2
  done
  mkdir -p "$reports" "$logs"
  IDEM_REPORT=$(mktemp -d)
  export IDEM_REPORT IDEM_LONG=1
  if [[ " $* " == *" miri "* ]]; then
    beside miri &
    miri=$!
  fi
  for campaign in "$@"; do
    say "$campaign"
    if [ "$campaign" = miri ]; then
      wait "$miri" || failed=1
    else
      one "$campaign" || failed=1
    fi
    assemble >docs/proof/REPORT.md
  done
  return "$failed"
}
