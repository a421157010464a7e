package awsfake

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Account is the account ID of the fakes, Region their region.
const (
	Account = "123456789012"
	Region  = "us-east-1"
)

// IAM decides which calls an identity may make according to the policies of its role. The
// identity of a call is the access key ID that signed it. IAM does not verify signatures. It
// records the denied calls and the used permissions. It is safe for concurrent use.
type IAM struct {
	roles map[string]Role
	// stateMachine is the ARN of the state machine whose task tokens are used.
	stateMachine string

	mu     sync.Mutex
	used   map[string]map[grant]bool
	denied map[string]*Denied
}

// Denied is a group of equal calls that an identity may not make.
type Denied struct {
	Identity, Action, Resource string
	// Why says why the role does not permit the call.
	Why string
	// Count is the number of these calls.
	Count int
}

func (d Denied) String() string {
	return fmt.Sprintf("%s may not %s on %s: %s (%d calls)", d.Identity, d.Action, d.Resource, d.Why, d.Count)
}

// Permission is an action on a resource, as written in a role.
type Permission struct{ Identity, Action, Resource string }

func (p Permission) String() string {
	return fmt.Sprintf("%s: %s on %s", p.Identity, p.Action, p.Resource)
}

// NewIAM returns an IAM with the roles of the identities. It returns an error for a statement
// that it cannot evaluate. stateMachine is the ARN of the state machine whose task tokens are
// used.
func NewIAM(roles map[string]Role, stateMachine string) (*IAM, error) {
	i := &IAM{roles: roles, stateMachine: stateMachine, used: map[string]map[grant]bool{}, denied: map[string]*Denied{}}
	var problems []error
	for _, identity := range slices.Sorted(maps.Keys(roles)) {
		if err := roles[identity].check(); err != nil {
			problems = append(problems, fmt.Errorf("role of %s: %w", identity, err))
		}
		i.used[identity] = map[grant]bool{}
	}
	return i, errors.Join(problems...)
}

// Authorize returns nil if the identity may make the call, and otherwise the response that
// denies it. It denies a call whose permissions the fake does not know.
func (i *IAM) Authorize(r *http.Request, body []byte) *http.Response {
	signed, err := signerOf(r)
	if err != nil {
		return i.deny(r, Access{Action: "a call without a signature", Resource: r.URL.Path}, "", err.Error())
	}
	needs, err := accesses(signed, r, body, i.stateMachine)
	if err != nil {
		return i.deny(r, Access{Action: signed.service + ":" + operationOf(r), Resource: r.URL.Path}, signed.identity, err.Error())
	}
	return i.allow(r, signed.identity, needs)
}

func (i *IAM) allow(r *http.Request, identity string, needs []Access) *http.Response {
	role, known := i.roles[identity]
	for _, need := range needs {
		used, why := role.decide(need)
		if !known {
			why = "there is no such role"
		}
		if len(used) == 0 {
			return i.deny(r, need, identity, why)
		}
		i.mu.Lock()
		for _, g := range used {
			i.used[identity][g] = true
		}
		i.mu.Unlock()
	}
	return nil
}

// Use reports whether a service may make a call with the role of an identity, for example
// Lambda when it receives a function's messages from a queue.
func (i *IAM) Use(identity string, needs ...Access) bool { return i.allow(nil, identity, needs) == nil }

// deny records a denied call and returns its response.
func (i *IAM) deny(r *http.Request, a Access, identity, why string) *http.Response {
	d := Denied{Identity: identity, Action: a.Action, Resource: a.Resource, Why: why}
	i.mu.Lock()
	key := fmt.Sprint(d)
	if i.denied[key] == nil {
		i.denied[key] = &d
	}
	i.denied[key].Count++
	i.mu.Unlock()
	text, err := json.Marshal(map[string]string{
		"__type": "AccessDeniedException", "message": fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s", identity, a.Action, a.Resource),
	})
	if err != nil {
		panic(err) // two strings can be encoded
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Status: http.StatusText(http.StatusBadRequest), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Errortype": {"AccessDeniedException"}},
		ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)), Request: r,
	}
}

// Denied returns the denied calls in groups, sorted.
func (i *IAM) Denied() []Denied {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []Denied
	for _, d := range i.denied {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Denied) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// Unused returns the permissions of all roles that no call has used, sorted.
func (i *IAM) Unused() []Permission {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []Permission
	for identity, role := range i.roles {
		for n, s := range role {
			for a, action := range s.Actions {
				for r, resource := range s.Resources {
					if s.Effect == effectAllow && !i.used[identity][grant{n, a, r}] {
						all = append(all, Permission{identity, action, resource})
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Permission) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}
