package command

// The exit codes. They are the same for every command.
const (
	ExitOK = 0
	// ExitFailed: the run failed, or the command did in a way of its own.
	ExitFailed = 1
	// ExitUsage: the command line, or what the server was asked for, is wrong.
	ExitUsage = 2
	// ExitUnreachable: the server did not answer, or cannot serve now.
	ExitUnreachable = 3
	// ExitGone: no such task, or it or its output has expired.
	ExitGone = 4
	// ExitRunning: the run has not ended yet.
	ExitRunning = 5
	// ExitDenied: the server wants a token, or another one.
	ExitDenied = 6
	// ExitInterrupted: a signal ended the command.
	ExitInterrupted = 130
)

// exitHelp stands in the help of the commands that call a server.
const exitHelp = `Exit codes:
  0    done
  1    the run failed, or this command did
  2    the command line or the request is wrong
  3    the server cannot be reached, or cannot serve now
  4    no such task, or it has expired
  5    the run has not ended yet
  6    the server wants a token (SORTIE_TOKEN), or another one
  130  interrupted`
