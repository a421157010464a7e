package awsfake

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// update is a parsed update expression.
type update struct {
	sets    map[string]operation
	removes map[string]bool
}

// operation computes the new value of an attribute from the item before the update.
type operation func(item) (value, error)

// update parses an update expression. A nil text is an update that changes nothing.
func (e *expressions) update(text *string) update {
	u := update{map[string]operation{}, map[string]bool{}}
	if text == nil {
		return u
	}
	e.start(*text)
	seen := map[string]bool{}
	for len(e.tokens) > 0 && e.err == nil {
		clause, ok := e.accept("SET", "REMOVE")
		if !ok {
			e.fail("the fake supports the clauses SET and REMOVE, got %q", e.tokens[0])
		}
		if seen[clause] {
			e.fail("the %s section can only be used once in an update expression", clause)
		}
		seen[clause] = true
		e.clause(clause, u)
	}
	return u
}

func (e *expressions) clause(clause string, u update) {
	for more := true; more && e.err == nil; _, more = e.accept(",") {
		name := e.attribute()
		if u.sets[name] != nil || u.removes[name] {
			e.fail("two document paths overlap with each other; both are %s", name)
		}
		if clause == "REMOVE" {
			u.removes[name] = true
			continue
		}
		e.expect("=")
		u.sets[name] = e.sum()
	}
}

// sum parses the right side of a SET: one operand, or two operands with + or -.
func (e *expressions) sum() operation {
	left := e.term()
	sign := int64(1)
	if operator, ok := e.accept("+", "-"); !ok {
		return left
	} else if operator == "-" {
		sign = -1
	}
	right := e.term()
	return func(is item) (value, error) {
		a, err := left(is)
		if err != nil {
			return nil, err
		}
		b, err := right(is)
		if err != nil {
			return nil, err
		}
		if kind(a) != "N" || kind(b) != "N" {
			return nil, invalid("an operand in the update expression has an incorrect data type")
		}
		return add(a, b, sign)
	}
}

func (e *expressions) term() operation {
	if _, ok := e.accept("IF_NOT_EXISTS"); ok {
		e.expect("(")
		name := e.attribute()
		e.expect(",")
		otherwise := e.term()
		e.expect(")")
		return func(is item) (value, error) {
			if v, ok := is[name]; ok {
				return v, nil
			}
			return otherwise(is)
		}
	}
	if _, ok := e.accept("LIST_APPEND"); ok {
		e.expect("(")
		first := e.term()
		e.expect(",")
		second := e.term()
		e.expect(")")
		return func(is item) (value, error) { return joined(is, first, second) }
	}
	operand := e.operand()
	return func(is item) (value, error) {
		v, ok := operand(is)
		if !ok {
			return nil, invalid("the provided expression refers to an attribute that does not exist in the item")
		}
		return v, nil
	}
}

func joined(is item, first, second operation) (value, error) {
	a, err := first(is)
	if err != nil {
		return nil, err
	}
	b, err := second(is)
	if err != nil {
		return nil, err
	}
	before, ok := a.(*types.AttributeValueMemberL)
	after, also := b.(*types.AttributeValueMemberL)
	if !ok || !also {
		return nil, invalid("an operand in the update expression has an incorrect data type")
	}
	return &types.AttributeValueMemberL{Value: slices.Concat(before.Value, after.Value)}, nil
}

// apply returns the updated copy of an item.
func (u update) apply(before item) (item, error) {
	after := maps.Clone(before)
	for name, compute := range u.sets {
		v, err := compute(before)
		if err != nil {
			return nil, err
		}
		after[name] = v
	}
	for name := range u.removes {
		delete(after, name)
	}
	return after, nil
}
