package cost

import (
	"fmt"
	"strings"
)

// Units of an event that is alone in its batch, and of one in a batch of ten. Tests of
// the store's adapter count them: TestFeedCosts those of the feed, TestDeliveryCosts those
// of webhooks. The bus and the webhooks each move a cursor for a batch, and read it.
const (
	aloneWrites, aloneReads = 4 + 2, 2.2 + 7
	batchWrites, batchReads = 1.0 + 0.2, 0.22 + 0.7

	deliveryWrites, deliveryReads           = 11, 5
	batchDeliveryWrites, batchDeliveryReads = 2.8, 0.7
)

// Time of a function and of a reader, in seconds.
const (
	readerHour   = 3600
	readerLife   = 14 * 60
	readerStream = 13 * 60 // the mean
	deliverTime  = 0.5
	deliverGB    = 0.25
)

// reading returns the usage of a reader for a time: its execution looks at the head of the
// stream twice a second for half a unit, and each 15 s for a unit and a half.
func reading(seconds float64) Usage {
	streams := seconds / readerStream
	return Usage{
		LambdaGBs: seconds * functionGB, ReadUnits: seconds * (2*0.5 + 1.5/15),
		APIRequests: streams, LambdaRequests: streams, WriteUnits: 2 * streams, // its seat
	}
}

// eventBills returns the bills of events. A message of the queue is sent, received and
// deleted.
func eventBills() []jobBill {
	wake := Usage{QueueRequests: 3, LambdaRequests: 1, LambdaGBs: deliverTime * deliverGB}
	return []jobBill{
		{"an event alone in its batch", Usage{WriteUnits: aloneWrites, ReadUnits: aloneReads, Events: 1, LambdaRequests: 1}},
		{"an event in a batch of ten", Usage{WriteUnits: batchWrites, ReadUnits: batchReads, Events: 1, LambdaRequests: 0.1}},
		{"a delivery to a webhook, alone", wake.Plus(Usage{WriteUnits: deliveryWrites, ReadUnits: deliveryReads})},
		{"a delivery to a webhook, one of ten", wake.Times(0.1).Plus(Usage{WriteUnits: batchDeliveryWrites, ReadUnits: batchDeliveryReads})},
		{"an hour of a reader without events", reading(readerHour)},
		{"a reader that has left, at most", reading(readerLife)},
	}
}

// eventTable returns the table of events as Markdown.
func eventTable() string {
	var text strings.Builder
	text.WriteString("| of events | write units | read units | queue requests | functions | GB-seconds | $ a million |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, b := range eventBills() {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %.2f |\n", b.name, figure(b.usage[WriteUnits]), figure(b.usage[ReadUnits]),
			figure(b.usage[QueueRequests]), figure(b.usage[LambdaRequests]), figure(b.usage[LambdaGBs]), Dollars(b.usage)*1e6)
	}
	return text.String()
}
