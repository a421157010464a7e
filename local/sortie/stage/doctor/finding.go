package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/smithy-go"
)

// Status is the result of a check.
type Status string

// The results of checks.
const (
	// OK means that there is nothing to do.
	OK Status = "ok"
	// Missing means that something does not exist yet.
	Missing Status = "missing"
	// Wrong means that something exists but does not work.
	Wrong Status = "wrong"
	// Unknown means that the check could not be made.
	Unknown Status = "unknown"
)

// Finding is the result of one check.
type Finding struct {
	// Check names what was checked, such as "bootstrap" or "secret fly".
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Detail describes the observation.
	Detail string `json:"detail"`
	// The next step of the operator, often a command; empty if the status is OK.
	ToDo string `json:"toDo,omitempty"`
}

// String returns the finding as one line.
func (f Finding) String() string {
	line := fmt.Sprintf("%-7s  %-18s  %s", f.Status, f.Check, f.Detail)
	if f.ToDo != "" {
		line += ". To do: " + f.ToDo
	}
	return line
}

func ok(check, format string, args ...any) Finding {
	return Finding{check, OK, fmt.Sprintf(format, args...), ""}
}

func missing(check, detail, toDo string) Finding { return Finding{check, Missing, detail, toDo} }

func wrong(check, detail, toDo string) Finding { return Finding{check, Wrong, detail, toDo} }

func unknown(check, detail, toDo string) Finding { return Finding{check, Unknown, detail, toDo} }

// denied are AWS's error codes for a missing permission.
var denied = map[string]bool{"AccessDenied": true, "AccessDeniedException": true, "UnauthorizedOperation": true, "AuthorizationError": true}

// permission matches the name of the permission in an error message.
var permission = regexp.MustCompile(`not authorized to perform:? ([a-z0-9-]+:[A-Za-z]+)`)

// code returns the code of an AWS error, or "" for any other error.
func code(err error) string {
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		return refused.ErrorCode()
	}
	return ""
}

// unmade returns the finding of a check whose call failed. action is the permission that the
// call needs.
func (e *exam) unmade(check, action string, err error) Finding {
	if denied[code(err)] {
		if found := permission.FindStringSubmatch(err.Error()); found != nil {
			action = found[1]
		}
		who := "the credentials"
		if e.caller.arn != "" {
			who = e.caller.arn
		}
		return unknown(check, "not checked: no permission for "+action, "allow "+who+" "+action+", then repeat "+e.again())
	}
	return unknown(check, "not checked: "+reason(err), "repeat "+e.again()+"; if that fails, too, check the network and the proxy of this machine")
}

// again returns the command that repeats the checks.
func (e *exam) again() string { return "sortie stage doctor " + e.Stage }

// reason describes a failed call without its request, which can contain a secret.
func reason(err error) string {
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		return strings.TrimRight(refused.ErrorCode()+": "+refused.ErrorMessage(), ".: ")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if called, ok := errors.AsType[*url.Error](err); ok {
		err = called.Err
	}
	if called, ok := errors.AsType[*net.OpError](err); ok {
		err = called
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
