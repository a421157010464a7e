//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// settings are the flags.
type settings struct {
	command     []string
	output      string
	contentType string
	standalone  bool
	verbose     bool
	noLog       bool
	logLimit    int
	killAfter   time.Duration
	rules       rules
}

const help = `sortie-exec runs a program as a worker of Sortie.

  sortie-exec [flags] CMD ARG...

It reads TASK_ENVELOPE (or the export contract's CALLBACK_URL and TASK_ID), says
started, runs CMD, sends heartbeats, and says completed with what CMD came to.

  --output FILE           upload FILE as the task's output when CMD succeeds
  --content-type TYPE     of that file (application/octet-stream)
  --exit LIST=CATEGORY    CMD's exit codes that mean CATEGORY; may be repeated
  --user-exit LIST        the same as --exit LIST=USER_CODE
  --retryable-exit LIST   exit codes after which another attempt may help
  --final-exit LIST       exit codes after which none does
  --kill-after DURATION   from SIGTERM to SIGKILL (three fifths of the grace period)
  --log-limit BYTES       what is kept of CMD's output for the log (1048576)
  --no-log                pass CMD's output through and keep nothing of it
  --standalone            run CMD also where there is no task
  --verbose               tell what happens, not only what goes wrong
  --help                  this text

LIST is exit codes and ranges: 3,70-75. CATEGORY is USER_CODE, DATA_QUALITY,
INFRASTRUCTURE, CONFIGURATION or TIMEOUT.

Progress. CMD may write lines to the file descriptor that SORTIE_PROGRESS_FD
names: "45 reading page 9", or JSON with any of

  {"progressPct":45,"message":"...","phase":"...","rowCount":10,
   "partialProgress":{...},"metrics":{...},
   "error":{"category":"DATA_QUALITY","message":"...","retryable":false}}

What "error" says is reported if CMD then fails. CMD also gets SORTIE_TASK_ID,
SORTIE_ATTEMPT and SORTIE_OUTPUT (the FILE), and not TASK_ENVELOPE and
CALLBACK_URL, which are secrets.

What CMD's end means, unless --exit says otherwise:

  exit 0                  SUCCEEDED
  64, 77, 78, 126, 127    CONFIGURATION (usage, permission, config, cannot run, not found)
  65, 66                  DATA_QUALITY (bad input, no input)
  69, 71-76               INFRASTRUCTURE (a service or the system failed, try later)
  124, SIGXCPU            TIMEOUT
  SIGKILL, SIGTERM, SIGINT, SIGHUP that sortie-exec did not send
                          INFRASTRUCTURE (SIGKILL is mostly for want of memory)
  anything else           USER_CODE

129 to 159 mean the signal, as a shell says it. Whether another attempt helps is
the category's own rule. After a cancel CMD gets SIGTERM, then SIGKILL, and the
outcome is CANCELLED, whatever its exit code.

sortie-exec ends with CMD's exit code, or 128 and the signal's number; with 126
and 127 where CMD cannot be run or found; and with 125 where it failed itself:
wrong flags, no task, a task that is not wanted, an output or a result that could
not be delivered.
`

const defaultLogLimit = 1 << 20

// parse reads the flags; flag.ErrHelp where help is wanted.
func parse(args []string) (settings, error) {
	s := settings{rules: rules{category: map[int]string{}, retryable: map[int]bool{}}}
	f := flag.NewFlagSet("sortie-exec", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.output, "output", "", "")
	f.StringVar(&s.contentType, "content-type", "application/octet-stream", "")
	f.BoolVar(&s.standalone, "standalone", false, "")
	f.BoolVar(&s.verbose, "verbose", false, "")
	f.BoolVar(&s.noLog, "no-log", false, "")
	f.IntVar(&s.logLimit, "log-limit", defaultLogLimit, "")
	f.DurationVar(&s.killAfter, "kill-after", 0, "")
	f.Func("exit", "", func(text string) error {
		list, category, _ := strings.Cut(text, "=")
		if !slices.Contains(contract.Categories(), category) || category == contract.CategoryCancelled {
			return errors.New("want LIST=CATEGORY")
		}
		return s.rules.each(list, func(code int) { s.rules.category[code] = category })
	})
	f.Func("user-exit", "", func(list string) error {
		return s.rules.each(list, func(code int) { s.rules.category[code] = contract.CategoryUserCode })
	})
	f.Func("retryable-exit", "", func(list string) error {
		return s.rules.each(list, func(code int) { s.rules.retryable[code] = true })
	})
	f.Func("final-exit", "", func(list string) error {
		return s.rules.each(list, func(code int) { s.rules.retryable[code] = false })
	})
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.command = f.Args()
	switch {
	case len(s.command) == 0:
		return s, errors.New("no CMD is given")
	case s.logLimit < 0 || s.logLimit > math.MaxInt32:
		return s, errors.New("--log-limit is out of range")
	case s.killAfter < 0:
		return s, errors.New("--kill-after is negative")
	}
	return s, nil
}

// each calls do with every exit code of a list.
func (rules) each(list string, do func(code int)) error {
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || from < 1 || to > 255 || from > to {
			return fmt.Errorf("%q is no exit code from 1 to 255", part)
		}
		for code := from; code <= to; code++ {
			do(code)
		}
	}
	return nil
}
