package apicheck_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// accessOf returns the access that an operation of the document requires.
func accessOf(op apicheck.Operation) httpkit.Access {
	return map[string]httpkit.Access{
		"[]": httpkit.ForAll, "[ clientToken]": httpkit.ForClients, "[ clientToken ticketInQuery]": httpkit.ForReaders,
		"[workerToken workerTokenInQuery]": httpkit.ForWorkers, "[workerToken]": httpkit.ForWorkers,
	}[join(op.Credentials)]
}

// attacked is a server with the data for each credential.
type attacked struct {
	*apitest.Stage

	records *records
	task    string
	// worker is the token of the task's worker, foreign that of another task's worker.
	worker, foreign string
	// ticket is a ticket of the owner, lost one of a revoked token.
	ticket, lost string
	// callback is the query of the task's CALLBACK_URL.
	callback string
}

// attack prepares a server for an operation, with a task that has ended (for clients) or is
// running (for workers).
func attack(t *testing.T, op apicheck.Operation) *attacked {
	t.Helper()
	stage, records, tickets := withRecords(t)
	a := &attacked{Stage: stage, records: records}
	if accessOf(op) == httpkit.ForWorkers {
		a.task = stage.Accept(t)
		location, err := url.Parse(stage.Start(t, a.task))
		if err != nil {
			t.Fatal(err)
		}
		a.worker, a.callback = stage.Envelope(t, a.task).TaskToken, location.RawQuery
	} else {
		a.task = completed(t, stage, op)
	}
	other := stage.Accept(t)
	location, err := url.Parse(stage.Start(t, other))
	if err != nil {
		t.Fatal(err)
	}
	if a.foreign = stage.Envelope(t, other).TaskToken; a.worker == "" {
		a.worker = a.foreign
	}
	if slices.Contains(op.Credentials, "workerTokenInQuery") {
		a.foreign = location.Query().Get("token")
	}
	stage.Write(t, other, "another line")
	stage.Succeed(t, other, "b.xml", "application/xml", "<b/>")
	for text, holder := range map[*string]access.Token{&a.ticket: access.Full("owner", owner, apitest.Tenant, "main"), &a.lost: access.Full("revoked", revoked, apitest.Tenant, "main")} {
		var err error
		who := port.Identity{Tenant: apitest.Tenant, Workspace: "main", Subject: holder.Subject(), Scopes: holder.Scopes}
		if *text, _, err = tickets.Ticket(t.Context(), who, ""); err != nil {
			t.Fatal(err)
		}
	}
	records.revoke("revoked")
	return a
}

// The outcomes of the matrix.
const (
	refused   = "401"         // UNAUTHENTICATED
	forbidden = "403"         // valid token, but not for this operation
	noScope   = "403 scope"   // MISSING_SCOPE with the scope
	unread    = "400 or 401"  // a parameter that workers never send
	allowed   = "is admitted" // neither 401 nor 403
)

// credential is a column of the matrix: the credential of a caller, and the outcome for each
// kind of access.
type credential struct {
	name string
	// header returns the value of Authorization; nil sends no header.
	header func(a *attacked, op apicheck.Operation) string
	// query is added to the path.
	query                          func(a *attacked) string
	clients, readers, workers, all string
}

func bearer(token string) func(*attacked, apicheck.Operation) string {
	return func(*attacked, apicheck.Operation) string { return "Bearer " + token }
}

// credentials are the columns. TestAttackMatrix adds those for the scopes and for the other
// tenant.
var credentials = []credential{
	{name: "no token", clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "an empty token", header: bearer(""), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "an unknown token", header: bearer("unknown-token-of-16"), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "more than a token", header: bearer(owner + "x"), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "a part of a token", header: bearer(owner[1:]), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "the digest of a token", header: bearer(access.Digest(owner)), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "another scheme", header: func(*attacked, apicheck.Operation) string { return "Basic " + owner }, clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "an expired token", header: bearer(expired), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "a revoked token", header: bearer(revoked), clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "a client's token", header: bearer(owner), workers: refused, all: allowed},
	{name: "a worker's token", header: func(a *attacked, _ apicheck.Operation) string { return "Bearer " + a.worker }, clients: refused, readers: refused, all: allowed},
	{name: "the token of another task's worker", header: func(a *attacked, _ apicheck.Operation) string { return "Bearer " + a.foreign }, clients: refused, readers: refused, workers: forbidden, all: allowed},
	{name: "a ticket as a token", header: func(a *attacked, _ apicheck.Operation) string { return "Bearer " + a.ticket }, clients: refused, readers: refused, workers: refused, all: allowed},
	{name: "a ticket", query: func(a *attacked) string { return "ticket=" + a.ticket }, clients: refused, readers: allowed, workers: unread},
	{name: "a ticket of a revoked token", query: func(a *attacked) string { return "ticket=" + a.lost }, clients: refused, readers: refused, workers: unread},
	{name: "a token in the place of a ticket", query: func(*attacked) string { return "ticket=" + owner }, clients: refused, readers: refused, workers: unread},
	{name: "a token in the query", query: func(*attacked) string { return "token=" + owner }, clients: refused, readers: refused, workers: unread},
}

// want returns the outcome for an operation; empty if the call is omitted.
func (c credential) want(op apicheck.Operation) string {
	return map[httpkit.Access]string{
		httpkit.ForClients: c.clients, httpkit.ForReaders: c.readers, httpkit.ForWorkers: c.workers, httpkit.ForAll: c.all,
	}[accessOf(op)]
}

// ofScopes returns the columns for the scopes of an operation: all scopes but the needed one,
// and each other scope alone.
func ofScopes(op apicheck.Operation) (columns []credential) {
	for _, needed := range op.Scopes {
		columns = append(columns, credential{name: "without " + needed, header: bearer(without(access.Scope(needed))), clients: noScope, readers: noScope})
		for _, other := range access.Scopes() {
			if string(other) != needed {
				columns = append(columns, credential{name: string(other) + " alone", header: bearer(alone(other)), clients: noScope, readers: noScope})
			}
		}
	}
	return columns
}

// ofWorkers returns the body of a worker's call, by the end of its path.
func ofWorkers(path string) string {
	switch path[strings.LastIndex(path, "/")+1:] {
	case "started", "heartbeat":
		return `{"attempt":1,"workerId":"w"}`
	case "logs":
		return `{"attempt":1,"workerId":"w","sequence":0,"stream":"stdout","data":"eA=="}`
	case "completed":
		return `{"attempt":1,"workerId":"w","outcome":"FAILED","error":{"code":"X","message":"x","category":"USER_CODE"}}`
	}
	return `{"status":"error","error":"x"}`
}

// send calls an operation with a credential.
func (a *attacked) send(t *testing.T, op apicheck.Operation, c credential, task string) apitest.Answer {
	t.Helper()
	header, path := "", op.Path
	if c.header != nil {
		header = c.header(a, op)
	}
	if c.query != nil {
		path += "?" + c.query(a)
	}
	if accessOf(op) == httpkit.ForWorkers {
		return a.Call(t, op.Method, strings.ReplaceAll(path, "{task_id}", task), ofWorkers(op.Path), "Authorization", header)
	}
	return callWith(t, a.Stage, op, path, task, "Authorization", header)
}

// outcomeOf returns the outcome of a response.
func outcomeOf(op apicheck.Operation, answer apitest.Answer) string {
	missing := strings.Contains(strings.ToUpper(answer.Body), `"MISSING_SCOPE"`) && slices.ContainsFunc(op.Scopes, func(s string) bool { return strings.Contains(answer.Body, s) })
	switch {
	case answer.Status == http.StatusUnauthorized && answer.Header.Get("WWW-Authenticate") != "":
		return refused
	case answer.Status == http.StatusForbidden && (missing || op.Method == http.MethodHead):
		return noScope
	case answer.Status == http.StatusForbidden:
		return forbidden
	case answer.Status == http.StatusUnauthorized:
		return "401 without WWW-Authenticate"
	}
	return allowed
}

// TestAttackMatrix calls each operation of the document with each credential: without a token,
// with invalid tokens, with tokens of others, and with each scope. A refused call must change
// nothing. Then it calls the operation with only the needed scope, or as the worker of the
// task, and as another tenant.
func TestAttackMatrix(t *testing.T) {
	t.Parallel()
	played := 0
	var requests atomic.Int64
	t.Cleanup(func() { t.Logf("%d requests that must be refused", requests.Load()) })
	for _, op := range load(t).Operations() {
		if accessOf(op) == "" {
			t.Errorf("%s %s: got the credentials %q, want a kind of the matrix", op.Method, op.Path, op.Credentials)
			continue
		}
		played++
		t.Run(op.Method+" "+op.Path, func(t *testing.T) {
			t.Parallel()
			a := attack(t, op)
			before := a.Run(t, a.task)
			for _, c := range slices.Concat(credentials, ofScopes(op)) {
				want := c.want(op)
				if want == "" {
					continue
				}
				for _, task := range []string{a.task, unknownTask} {
					if task == unknownTask && want != noScope && want != refused {
						continue
					}
					answer := a.send(t, op, c, task)
					if want != allowed {
						requests.Add(1)
					}
					if got := outcomeOf(op, answer); got != want && (want != unread || got != refused && answer.Status != http.StatusBadRequest) {
						t.Errorf("%s for %s: got %d %s, want %s", c.name, task, answer.Status, answer.Body, want)
					}
				}
			}
			if diff := cmp.Diff(before, a.Run(t, a.task)); diff != "" {
				t.Errorf("got a changed run after calls that were refused:\n%s", diff)
			}
			switch accessOf(op) {
			case httpkit.ForClients, httpkit.ForReaders:
				if len(op.Scopes) != 1 {
					t.Fatalf("got the scopes %v, want one", op.Scopes)
				}
				if answer := call(t, a.Stage, op, a.task, alone(access.Scope(op.Scopes[0]))); !succeeds(op, answer) {
					t.Errorf("with %s alone: got %d %s, want a success", op.Scopes[0], answer.Status, answer.Body)
				}
				otherTenant(t, op)
			case httpkit.ForWorkers:
				own := credential{header: func(a *attacked, _ apicheck.Operation) string { return "Bearer " + a.worker }}
				if slices.Contains(op.Credentials, "workerTokenInQuery") {
					own = credential{query: func(a *attacked) string { return a.callback }}
				}
				if answer := a.send(t, op, own, a.task); answer.Status >= http.StatusMultipleChoices {
					t.Errorf("as the worker: got %d %s, want a success", answer.Status, answer.Body)
				}
			case httpkit.ForAll:
			}
		})
	}
	if played < 80 {
		t.Errorf("got %d operations, want all of the document", played)
	}
}
