package awsfake

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition reports whether an item meets a condition or filter expression.
type condition func(item) bool

// condition parses a condition. A nil text is a condition that always holds.
func (e *expressions) condition(text *string) condition {
	if text == nil {
		return func(item) bool { return true }
	}
	e.start(*text)
	c := e.either()
	e.end()
	return c
}

func (e *expressions) either() condition {
	c := e.both()
	for {
		if _, ok := e.accept("OR"); !ok {
			return c
		}
		left, right := c, e.both()
		c = func(is item) bool { return left(is) || right(is) }
	}
}

func (e *expressions) both() condition {
	c := e.single()
	for {
		if _, ok := e.accept("AND"); !ok {
			return c
		}
		left, right := c, e.single()
		c = func(is item) bool { return left(is) && right(is) }
	}
}

func (e *expressions) single() condition {
	if _, ok := e.accept("NOT"); ok {
		c := e.single()
		return func(is item) bool { return !c(is) }
	}
	if _, ok := e.accept("("); ok {
		c := e.either()
		e.expect(")")
		return c
	}
	if function, ok := e.accept("ATTRIBUTE_EXISTS", "ATTRIBUTE_NOT_EXISTS", "BEGINS_WITH"); ok {
		return e.function(function)
	}
	return e.comparison()
}

func (e *expressions) function(name string) condition {
	e.expect("(")
	attribute := e.attribute()
	if name == "BEGINS_WITH" {
		e.expect(",")
		prefix := e.constant()
		e.expect(")")
		return func(is item) bool { return beginsWith(is[attribute], prefix) }
	}
	e.expect(")")
	return func(is item) bool {
		_, exists := is[attribute]
		return exists == (name == "ATTRIBUTE_EXISTS")
	}
}

func beginsWith(v, prefix value) bool {
	text, ok := v.(*types.AttributeValueMemberS)
	begin, also := prefix.(*types.AttributeValueMemberS)
	return ok && also && strings.HasPrefix(text.Value, begin.Value)
}

func (e *expressions) comparison() condition {
	left := e.operand()
	if _, ok := e.accept("BETWEEN"); ok {
		from := e.operand()
		e.expect("AND")
		to := e.operand()
		return func(is item) bool { return compares(is, ">=", left, from) && compares(is, "<=", left, to) }
	}
	operator := e.comparator()
	right := e.operand()
	return func(is item) bool { return compares(is, operator, left, right) }
}

func (e *expressions) comparator() string {
	operator, ok := e.accept("=", "<>", "<", "<=", ">", ">=")
	if !ok {
		e.fail("invalid expression: want a comparison near %q", strings.Join(e.tokens, " "))
	}
	return operator
}

// compares compares two operands for an item. A missing attribute, or one of another type, is
// not equal to any value and neither less nor greater.
func compares(is item, operator string, left, right operand) bool {
	a, has := left(is)
	b, also := right(is)
	same := has && also && equal(a, b)
	switch operator {
	case "=":
		return same
	case "<>":
		return !same
	}
	if !has || !also {
		return false
	}
	order, ok := compare(a, b)
	return ok && ordered(operator, order)
}

// ordered reports whether the result of a comparison, such as that of strings.Compare,
// satisfies the operator.
func ordered(operator string, order int) bool {
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}
