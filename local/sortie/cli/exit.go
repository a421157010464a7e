package cli

// The exit codes. They are the same for every command.
const (
	ExitOK = 0
	// ExitFailed reports a failed run, or a failure of the command itself.
	ExitFailed = 1
	// ExitUsage reports a wrong command line or request.
	ExitUsage = 2
	// ExitUnreachable reports that no Sortie server responds, or that it cannot
	// serve now.
	ExitUnreachable = 3
	// ExitGone reports an unknown task, or a task or output that has expired.
	ExitGone = 4
	// ExitRunning reports a run that has not ended, or not begun.
	ExitRunning = 5
	// ExitDenied reports a missing or wrong token.
	ExitDenied = 6
	// ExitCancelled reports a cancelled run.
	ExitCancelled = 7
	// ExitSkipped reports a run that was skipped: it has ended without an attempt.
	ExitSkipped = 8
	// ExitInterrupted reports a command that a signal ended.
	ExitInterrupted = 130
)

// exitHelp is part of the help of commands that call a server.
const exitHelp = `Exit codes:
  0    done
  1    the run or this command failed
  2    the command line or the request is wrong
  3    no Sortie server responds there, or it cannot serve now
  4    no such run, or it has expired
  5    the run has not ended, or has not begun
  6    missing or wrong token (SORTIE_TOKEN)
  7    the run was cancelled
  8    the run was skipped
  130  interrupted`
