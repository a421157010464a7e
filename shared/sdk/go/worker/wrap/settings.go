//go:build unix

package wrap

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

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ReportFlag limits the time in which sortie-exec sends started and delivers a result. It is
// for platforms that store the exit code, so that no wrapper waits for a server that is gone.
const ReportFlag = "--report-within"

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
	within      time.Duration
	rules       rules
}

const help = `sortie-exec runs a program as a worker of Sortie.

  sortie-exec [flags] CMD ARG...

It reads the task from the environment (TASK_ENVELOPE, or the export contract's
CALLBACK_URL and TASK_ID), sends started, runs CMD, sends heartbeats, and sends
completed with the result of CMD.

Flags:

  --output FILE           upload FILE as the task's output if CMD succeeds
  --content-type TYPE     content type of FILE (application/octet-stream)
  --exit LIST=CATEGORY    exit codes of CMD that mean CATEGORY; repeatable
  --user-exit LIST        the same as --exit LIST=USER_CODE
  --retryable-exit LIST   exit codes after which another attempt may succeed
  --final-exit LIST       exit codes after which no attempt is made
  --kill-after DURATION   time from SIGTERM to SIGKILL (three fifths of the
                          grace period)
  --log-limit BYTES       size of the stored log, without its middle (1048576);
                          with less the output is not sent while CMD runs
  --no-log                leave CMD its own output: store no log, mask nothing
  --report-within DURATION
                          time from the first try to send started, or to deliver
                          a result, after which sortie-exec gives up (the
                          attempt's deadline)
  --standalone            run CMD even if the environment has no task
  --verbose               log every step, not only failures; nothing is logged
                          without it for the program of a job
  --help                  print this text

LIST is a list of exit codes and ranges, such as 3,70-75. CATEGORY is USER_CODE,
DATA_QUALITY, INFRASTRUCTURE, CONFIGURATION or TIMEOUT.

Environment of CMD: that of sortie-exec without the secrets TASK_ENVELOPE and
CALLBACK_URL, and with SORTIE_TASK_ID, SORTIE_ATTEMPT, SORTIE_PROGRESS_FD,
TRACEPARENT (the W3C trace context of the attempt) and, with --output,
SORTIE_OUTPUT (the FILE).

Progress: CMD may write lines to the file descriptor SORTIE_PROGRESS_FD. A line is
"45 reading page 9", or a JSON object with any of these members:

  {"progressPct":45,"message":"...","phase":"...","rowCount":10,
   "partialProgress":{...},"metrics":{...},
   "error":{"category":"DATA_QUALITY","message":"...","retryable":false}}

A change is sent within a second. "error" is reported if CMD then fails.

Output: what CMD writes to its standard output and error is sent every 2 seconds
while a client follows it, otherwise every 30 seconds, and at the end. While Sortie
cannot be reached, 768 KiB are held; a line says how many bytes are missing.

Meaning of CMD's end, unless --exit changes it:

  exit 0                  SUCCEEDED
  64, 77, 78, 126, 127    CONFIGURATION (usage, permission, configuration,
                          not executable, not found)
  65, 66                  DATA_QUALITY (invalid or missing input)
  69, 71-76               INFRASTRUCTURE (a service or the system failed)
  124, SIGXCPU            TIMEOUT
  SIGKILL, SIGTERM, SIGINT, SIGHUP that sortie-exec did not send
                          INFRASTRUCTURE (SIGKILL usually means out of memory)
  anything else           USER_CODE

Exit codes 129 to 159 have the category of the signals 1 to 31, which a shell reports
so for its child, and are exit codes all the same. The category decides
whether the attempt is retried, unless --retryable-exit or --final-exit does. After
a cancel CMD gets SIGTERM, then SIGKILL, and the outcome is CANCELLED, whatever its
exit code.

Exit code of sortie-exec: that of CMD, or 128 + the number of the signal that ended
it; 126 if CMD cannot be run; 127 if it is not found; 125 if sortie-exec failed:
wrong flags, no task, a refused task, or an output or result that could not be
delivered.
`

const defaultLogLimit = 1 << 20

// sendsOutput reports whether the program's output is sent while it runs.
func (s settings) sendsOutput() bool { return !s.noLog && s.logLimit >= defaultLogLimit }

// parse reads the flags. The error is flag.ErrHelp for --help.
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
	f.DurationVar(&s.within, strings.TrimPrefix(ReportFlag, "--"), 0, "")
	f.Func("exit", "", func(text string) error {
		list, category, _ := strings.Cut(text, "=")
		if !slices.Contains(categories(), category) {
			return fmt.Errorf("want LIST=CATEGORY with one of %s", strings.Join(categories(), ", "))
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
		return s, errors.New("missing CMD")
	case s.logLimit < 0 || s.logLimit > math.MaxInt32:
		return s, fmt.Errorf("--log-limit: %d is out of range, want 0 to %d", s.logLimit, math.MaxInt32)
	case s.killAfter < 0:
		return s, fmt.Errorf("--kill-after: %s is negative", s.killAfter)
	case s.within < 0:
		return s, fmt.Errorf("%s: %s is negative", ReportFlag, s.within)
	}
	return s, nil
}

// categories returns the categories that an exit code can mean.
func categories() []string {
	return slices.DeleteFunc(contract.Categories(), func(c string) bool { return c == contract.CategoryCancelled })
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
			return fmt.Errorf("%q: want exit codes from 1 to 255", part)
		}
		for code := from; code <= to; code++ {
			do(code)
		}
	}
	return nil
}
