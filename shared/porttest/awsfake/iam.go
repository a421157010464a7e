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

// Account is the account of the fakes, Region their region.
const (
	Account = "123456789012"
	Region  = "us-east-1"
)

// IAM decides which calls an identity may make, as the policies of its role say. The
// identity of a call is the access key id that signs it; signatures are not checked.
// IAM remembers the calls that it has denied and the permissions that were used. It is safe
// for concurrent use.
type IAM struct {
	roles map[string]Role
	// stateMachine is the ARN to which task tokens belong.
	stateMachine string

	mu     sync.Mutex
	used   map[string]map[grant]bool
	denied map[string]*Denied
}

// Denied is a kind of call that an identity may not make.
type Denied struct {
	Identity, Action, Resource string
	// Why says which part of the role is missing.
	Why string
	// Count is the number of these calls.
	Count int
}

func (d Denied) String() string {
	return fmt.Sprintf("%s may not %s on %s: %s (%d calls)", d.Identity, d.Action, d.Resource, d.Why, d.Count)
}

// Permission is an action on a resource in a role, as the role names them.
type Permission struct{ Identity, Action, Resource string }

func (p Permission) String() string {
	return fmt.Sprintf("%s: %s on %s", p.Identity, p.Action, p.Resource)
}

// NewIAM returns the roles of identities. It returns an error for a statement that it cannot
// evaluate. stateMachine is the ARN to which task tokens belong.
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

// Authorize returns the response to a call that its identity may not make, or nil. A call
// whose permissions the fake does not know is denied.
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

// Use decides a call that a service makes with the role of an identity, such as Lambda when
// it receives the messages of a queue for a function, and reports whether it may.
func (i *IAM) Use(identity string, needs ...Access) bool { return i.allow(nil, identity, needs) == nil }

// deny remembers a call and returns its response.
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
		panic(err) // two texts
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, Status: http.StatusText(http.StatusBadRequest), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Errortype": {"AccessDeniedException"}},
		ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)), Request: r,
	}
}

// Denied returns the kinds of calls that were denied, sorted.
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
