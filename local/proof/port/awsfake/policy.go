package awsfake

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Statement is one statement of an IAM policy.
type Statement struct {
	// Effect is "Allow" or "Deny".
	Effect string `json:"effect"`
	// Actions and Resources can contain the wildcards * and ?.
	Actions   []string `json:"actions"`
	Resources []string `json:"resources"`
	// Conditions maps each operator to the allowed values of condition keys. All conditions
	// must hold.
	Conditions map[string]map[string][]string `json:"conditions,omitempty"`
}

// Role is the identity policy of an identity.
type Role []Statement

// Access is a permission that a call needs.
type Access struct {
	Action, Resource string
	// Context has the values of the condition keys of the call.
	Context map[string][]string
}

// The effects of a statement.
const (
	effectAllow = "Allow"
	effectDeny  = "Deny"
)

// The condition keys of calls that the fake knows.
const (
	leadingKeys     = "dynamodb:LeadingKeys"
	passedToService = "iam:PassedToService"
	qualifier       = "states:StateMachineQualifier"
)

// operator compares a value of a call with a value of a statement. A negated operator holds if
// no value of the statement matches.
type operator struct {
	matches func(pattern, value string) bool
	negated bool
}

func same(pattern, value string) bool { return pattern == value }

var operators = map[string]operator{
	"StringEquals": {matches: same}, "StringNotEquals": {same, true},
	"StringEqualsIgnoreCase": {matches: strings.EqualFold}, "StringNotEqualsIgnoreCase": {strings.EqualFold, true},
	"StringLike": {matches: like}, "StringNotLike": {like, true},
	"ArnEquals": {matches: like}, "ArnNotEquals": {like, true}, "ArnLike": {matches: like}, "ArnNotLike": {like, true},
}

// check returns an error for every part of the role that the fake cannot evaluate.
func (r Role) check() error {
	var problems []error
	for i, s := range r {
		if s.Effect != effectAllow && s.Effect != effectDeny {
			problems = append(problems, fmt.Errorf("statement %d: effect %q, want Allow or Deny", i, s.Effect))
		}
		if len(s.Actions) == 0 || len(s.Resources) == 0 {
			problems = append(problems, fmt.Errorf("statement %d: no actions or no resources", i))
		}
		for name, keys := range s.Conditions {
			if _, _, known := operatorOf(name); !known {
				problems = append(problems, fmt.Errorf("statement %d: the fake does not know the operator %s", i, name))
			}
			for key := range keys {
				if !slices.Contains([]string{leadingKeys, passedToService, qualifier}, key) {
					problems = append(problems, fmt.Errorf("statement %d: the fake does not know the condition key %s", i, key))
				}
			}
		}
	}
	return errors.Join(problems...)
}

// operatorOf returns the condition operator with the name and its quantifier, which is "" for a
// single value.
func operatorOf(name string) (o operator, quantifier string, known bool) {
	quantifier, plain, quantified := strings.Cut(name, ":")
	if !quantified {
		quantifier, plain = "", name
	}
	o, known = operators[strings.TrimSuffix(plain, "IfExists")]
	return o, quantifier, known && slices.Contains([]string{"", "ForAllValues", "ForAnyValue"}, quantifier)
}

// decide returns the action-resource pairs of the role that permit an access. If none permits
// it, why is the reason.
func (r Role) decide(a Access) (used []grant, why string) {
	why = "no statement allows it"
	for i, s := range r {
		for n, action := range s.Actions {
			for m, resource := range s.Resources {
				switch {
				case !like(strings.ToLower(action), strings.ToLower(a.Action)) || !like(resource, a.Resource):
				case !s.holds(a.Context):
					if s.Effect == effectAllow && len(used) == 0 {
						why = fmt.Sprintf("the conditions of the statement with %s do not hold for %v", action, a.Context)
					}
				case s.Effect == effectDeny:
					return nil, "a statement denies it"
				default:
					used = append(used, grant{i, n, m})
				}
			}
		}
	}
	return used, why
}

// grant is the position of an action and a resource in a role.
type grant struct{ statement, action, resource int }

// holds reports whether all conditions hold.
func (s Statement) holds(context map[string][]string) bool {
	for name, keys := range s.Conditions {
		for key, patterns := range keys {
			if !holdsFor(name, patterns, context[key]) {
				return false
			}
		}
	}
	return true
}

// holdsFor evaluates one condition for the values of its key. As in IAM, ForAllValues holds if
// there are no values.
func holdsFor(name string, patterns, values []string) bool {
	o, quantifier, _ := operatorOf(name)
	holds := func(value string) bool {
		return o.negated != slices.ContainsFunc(patterns, func(pattern string) bool { return o.matches(pattern, value) })
	}
	switch {
	case quantifier == "ForAllValues":
		return !slices.ContainsFunc(values, func(value string) bool { return !holds(value) })
	case len(values) == 0:
		return strings.HasSuffix(name, "IfExists") || o.negated && quantifier == ""
	}
	return slices.ContainsFunc(values, holds)
}

// like reports whether the text matches a pattern with * and ?.
func like(pattern, text string) bool {
	for ; pattern != ""; pattern = pattern[1:] {
		switch {
		case pattern[0] == '*':
			for rest := pattern[1:]; ; text = text[1:] {
				if like(rest, text) {
					return true
				}
				if text == "" {
					return false
				}
			}
		case text == "" || pattern[0] != '?' && pattern[0] != text[0]:
			return false
		}
		text = text[1:]
	}
	return text == ""
}
