// Package cost computes what AWS bills for a deployed Sortie.
//
//	functions ──► Proxy ──► LocalStack      requests, write and read units
//	                          │
//	      histories, logs ◄───┘             transitions, Lambda's time
//
// Usage is what was counted from the calls, Prices are AWS's prices with their
// date, and a Bill is the product, item by item. "make cost" counts on the
// stack that is deployed in LocalStack and writes testdata/measured.json;
// README.md is generated from that file, and a test compares it with the goals.
//
// What a laptop cannot measure is assumed and listed in Assumptions. Free
// tiers, discounts, taxes and the price of the workers' machines are not
// included.
package cost
