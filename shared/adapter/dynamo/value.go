package dynamo

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
)

func text(s string) types.AttributeValue  { return &types.AttributeValueMemberS{Value: s} }
func bytes(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// document encodes a packed document as binary and a plain one as a string, which consoles
// show.
func document(b []byte) types.AttributeValue {
	if format.Plain(b) {
		return text(string(b))
	}
	return bytes(b)
}

// list encodes a list of documents.
func list(of [][]byte) types.AttributeValue {
	values := make([]types.AttributeValue, len(of))
	for i, b := range of {
		values[i] = document(b)
	}
	return &types.AttributeValueMemberL{Value: values}
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func bytesOf(v types.AttributeValue) []byte {
	if b, ok := v.(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}

func numberOf(v types.AttributeValue) int64 {
	if s, ok := v.(*types.AttributeValueMemberN); ok {
		n, err := strconv.ParseInt(s.Value, 10, 64)
		if err == nil {
			return n
		}
	}
	return 0
}

// documentOf is the reverse of document.
func documentOf(v types.AttributeValue) []byte {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return []byte(s.Value)
	}
	return bytesOf(v)
}

func listOf(v types.AttributeValue) [][]byte {
	l, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		return nil
	}
	all := make([][]byte, len(l.Value))
	for i, each := range l.Value {
		all[i] = documentOf(each)
	}
	return all
}
