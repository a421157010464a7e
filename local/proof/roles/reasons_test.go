package roles_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/roles/deployment"
)

// reason explains why functions have permissions that the suite need not use.
type reason struct {
	// functions and actions are names separated by spaces. Empty functions mean all functions.
	// An action that ends in a colon means all actions of its service. resource is a regular
	// expression.
	functions, actions, resource string
	why                          string
}

// writers are the functions that commit to all items of the table.
const writers = "act admit callback constrain control deliver dispatch export fire inference jobs launch registry relay supervise sweep tasks terminate webhooks"

var reasons = []reason{
	{"", "logs:CreateLogStream logs:PutLogEvents", "log-group:", "Lambda writes the log with the role"},
	{"relay", "dynamodb:ListStreams", `/stream/\*$`, "AWS demands it of a function that reads a stream"},
	{"fire relay", "sqs:SendMessage", "dead-letters", "Lambda sends the events that failed with the role"},

	// Permissions that belong together: each use case needs some of them.
	{writers, "dynamodb:BatchGetItem dynamodb:ConditionCheckItem dynamodb:DeleteItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem", "table/Table$", "the records decide which parts the transaction of a commit has, and what it reads before"},
	{"act admit callback constrain control fire jobs launch supervise sweep tasks terminate", "states:SendTaskFailure states:SendTaskSuccess", ":stateMachine:", "a token fails if the state of its run has no transition to that of the record"},
	{"act admit constrain export fire jobs launch supervise sweep tasks terminate", "states:DescribeExecution", ":execution:", "a start that was repeated is compared with the one before"},
	{"act admit constrain dispatch jobs", "dynamodb:Query", "/index/(list|jobs)$", "a prediction reads the runs of a pool or a job, but only once in some minutes"},
	{"console jobs metrics relay sweep", "dynamodb:Query dynamodb:Scan", "/index/(due|machines)$", "the pages of an index are queried or scanned, as its last size says"},
	{"metrics", "dynamodb:BatchGetItem", "table/Table$", "the gauges read the records that an index names, if there are any"},

	// Calls that repair something, or that end something in a rare state.
	{"constrain sweep tasks terminate", "states:StopExecution", ":execution:", "only the run that is ended while it waits for a retry has an execution to stop"},
	{"supervise", "states:StartExecution", ":stateMachine:", "the state Reconciling, which a step enters that has failed, may hand the run over to a new execution"},
	{"fire", "scheduler:CreateSchedule", ":schedule/", "the wake-up of a job exists unless someone has removed it"},
	{"sweep", "states:StartExecution", "", "the sweep starts the executions that were lost"},
	{"sweep", "scheduler: iam:PassRole", "", "the sweep sets the wake-ups that were lost"},
	{"sweep", "secretsmanager:GetSecretValue", "", "the sweep repeats actions of jobs, and deletes expired outputs"},
	{"control dispatch inference sweep tasks", "lambda:InvokeFunction", "sortie-dev-dispatch", "a commit calls a dispatcher if its pool has none"},
	{"supervise", "kms:", ":key/", "the function calls Sortie itself before it ends a silent attempt; the sweep may be first"},
	{"push", "execute-api:ManageConnections sqs:SendMessage dynamodb:DeleteItem", "", "a connection ends when its token does; the tenant is queued again when a shift is over"},

	// Wiring that a function shares with another one.
	{"jobs", "secretsmanager:GetSecretValue", "/outputs", "the use case that creates runs can store an input; a job has its input in its definition"},
	{"tasks", "secretsmanager:GetSecretValue", "/fly", "a report names a machine of any platform; the agent of Kubernetes sends it"},
}

// also are the tests of a sample of the suite that use the permissions that no other test of the
// sample uses.
var also = []string{
	"service with OpenAI's API answers for an engine that is gone",
	"a browser signs in to the console and looks at a run", "hook before the run decides", "secret reaches its program and nothing else",
	"success, failure and skip have their own actions", "schedule fires at its times", "runs of a job are cancelled and retried by a filter",
	"failed delivery is attempted again", "export has a webhook of its own", "one-shot schedule fires once",
	"scheduled run of a job exists once", "callback token is valid for one task only", "lost worker is retried up to three attempts",
	"inference task streams its answer and continues behind an event", "large inference request is stored in the bucket and repeated", "webhook informs, and the run waits for its slot",
	"program is cancelled", "refused heartbeat is a sign of life",
	"jobs come after others", "clients without a valid token get 401", "ticket is for streams alone", "exported stream is proved complete",
}

// covers reports whether the reason applies to a permission.
func (r reason) covers(p awsfake.Permission) bool {
	return (r.functions == "" || slices.Contains(strings.Fields(r.functions), p.Identity)) && regexp.MustCompile(r.resource).MatchString(p.Resource) &&
		slices.ContainsFunc(strings.Fields(r.actions), func(action string) bool {
			return p.Action == action || strings.HasSuffix(action, ":") && strings.HasPrefix(p.Action, action)
		})
}

// checkRoles reports denied calls, and unused permissions without a reason.
func checkRoles(t *testing.T, iam *awsfake.IAM) {
	t.Helper()
	for _, d := range iam.Denied() {
		t.Error(d)
	}
	for _, p := range iam.Unused() {
		if !slices.ContainsFunc(reasons, func(r reason) bool { return r.covers(p) }) {
			t.Errorf("no use case uses the permission of %s: add one to the suite, remove the permission, give the reason in the table, or name its test in also", p)
		}
	}
}

// TestReasonsAreForPermissions checks that each of a reason's functions has a permission to
// which the reason applies.
func TestReasonsAreForPermissions(t *testing.T) {
	t.Parallel()
	d, err := deployment.Read()
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]awsfake.Role{}
	for name, f := range d.Functions {
		roles[name] = f.Role
	}
	iam, err := awsfake.NewIAM(roles, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reasons {
		covered := map[string]bool{}
		for _, p := range iam.Unused() {
			covered[p.Identity] = covered[p.Identity] || r.covers(p)
		}
		for name := range strings.FieldsSeq(r.functions) {
			if !covered[name] {
				t.Errorf("%s has no permission for the reason %q", name, r.why)
			}
		}
	}
}
