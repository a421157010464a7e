// Package consumed reads the consumed capacity from the responses of DynamoDB.
package consumed

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// By returns the operation of a response, and the write and read units that it consumed. They are
// 0 if the request did not ask for them. The operation of an unknown response is empty.
func By(out any) (operation string, writes, reads float64) {
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		return "GetItem", 0, one(out.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		return "Query", 0, one(out.ConsumedCapacity)
	case *dynamodb.ScanOutput:
		return "Scan", 0, one(out.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		return "BatchGetItem", 0, sum(out.ConsumedCapacity)
	case *dynamodb.PutItemOutput:
		return "PutItem", one(out.ConsumedCapacity), 0
	case *dynamodb.UpdateItemOutput:
		return "UpdateItem", one(out.ConsumedCapacity), 0
	case *dynamodb.DeleteItemOutput:
		return "DeleteItem", one(out.ConsumedCapacity), 0
	case *dynamodb.TransactWriteItemsOutput:
		return "TransactWriteItems", sum(out.ConsumedCapacity), 0
	}
	return "", 0, 0
}

func one(c *types.ConsumedCapacity) float64 {
	if c == nil {
		return 0
	}
	return aws.ToFloat64(c.CapacityUnits)
}

func sum(each []types.ConsumedCapacity) (units float64) {
	for i := range each {
		units += one(&each[i])
	}
	return units
}
