package cost

import (
	"fmt"
	"strings"
)

// Units of an event alone in its batch, and of one in a batch of ten. Tests of the store's
// adapter count them: TestFeedCosts for the feed, TestDeliveryCosts for webhooks. The bus and
// the webhooks each read and move a cursor once per batch.
const (
	aloneWrites, aloneReads = 4 + 2, 2.2 + 7
	batchWrites, batchReads = 0.8 + 0.2, 0.22 + 0.7

	deliveryWrites, deliveryReads           = 11, 5
	batchDeliveryWrites, batchDeliveryReads = 2.8, 0.7
)

// Durations of functions and readers, in seconds.
const (
	readerHour   = 3600
	readerLife   = 14 * 60
	readerStream = 13 * 60 // the mean
	deliverTime  = 0.5
	deliverGB    = 0.25
)

// Readers of a WebSocket API. The duration of a push is assumed, because no local part can
// measure it. A push reads the head of the stream, its oldest batch and the connections.
const (
	pushTime, pushGB = 0.1, 0.25
	pushReads        = 3
	socketMinutes    = 108 // mean duration of a connection
	socketKeepAlive  = 8   // minutes between the messages of a quiet connection
	socketWrites     = 12  // two items of the connection and its seat, written and deleted
)

// pushing returns the usage of a push: a message in the queue and a call of its function.
func pushing() Usage {
	return Usage{FIFORequests: 3, LambdaRequests: 1, LambdaGBs: pushTime * pushGB, ReadUnits: pushReads}
}

// quietSocket returns the usage of a tenant's only reader for some minutes: one push a minute,
// and its share of a handshake.
func quietSocket(minutes float64) Usage {
	messages, share := minutes/socketKeepAlive, minutes/socketMinutes
	return pushing().Times(minutes).Plus(Usage{
		SocketMinutes: minutes, SocketMessages: messages + 2*share, WriteUnits: messages + socketWrites*share, LambdaRequests: 2 * share,
	})
}

// reading returns the usage of a reader for a time. Its execution reads the head of the stream
// twice a second for half a unit, and each 15 s for one and a half units.
func reading(seconds float64) Usage {
	streams := seconds / readerStream
	return Usage{
		LambdaGBs: seconds * functionGB, ReadUnits: seconds * (2*0.5 + 1.5/15),
		APIRequests: streams, LambdaRequests: streams, WriteUnits: 2 * streams, // writes of its seat
	}
}

// eventBills returns the bills of events. A message of the queue causes three requests: send,
// receive and delete.
func eventBills() []jobBill {
	wake := Usage{QueueRequests: 3, LambdaRequests: 1, LambdaGBs: deliverTime * deliverGB}
	return []jobBill{
		{"an event alone in its batch", Usage{WriteUnits: aloneWrites, ReadUnits: aloneReads, Events: 1, LambdaRequests: 1}},
		{"an event in a batch of ten", Usage{WriteUnits: batchWrites, ReadUnits: batchReads, Events: 1, LambdaRequests: 0.1}},
		{"a delivery to a webhook, alone", wake.Plus(Usage{WriteUnits: deliveryWrites, ReadUnits: deliveryReads})},
		{"a delivery to a webhook, one of ten", wake.Times(0.1).Plus(Usage{WriteUnits: batchDeliveryWrites, ReadUnits: batchDeliveryReads})},
		{"an hour of a reader without events", reading(readerHour)},
		{"a reader that has left, at most", reading(readerLife)},
		{"an hour of a WebSocket without events", quietSocket(readerHour / 60)},
		{"a message to a WebSocket, alone", pushing().Plus(Usage{SocketMessages: 1, WriteUnits: 1})},
		{"a message to a WebSocket, one of ten", pushing().Plus(Usage{WriteUnits: 1}).Times(0.1).Plus(Usage{SocketMessages: 1})},
	}
}

// eventTable returns the table of events as Markdown.
func eventTable() string {
	var text strings.Builder
	text.WriteString("| of events | write units | read units | $ a million |\n|---|---:|---:|---:|\n")
	for _, b := range eventBills() {
		fmt.Fprintf(&text, "| %s | %s | %s | %.2f |\n", b.name, figure(b.usage[WriteUnits]), figure(b.usage[ReadUnits]), Dollars(b.usage)*1e6)
	}
	return text.String()
}
