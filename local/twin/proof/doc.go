// Package proof lets a client recognize the server of a data folder before it sends the
// token that it found there.
//
// Another program can have the address of a server that has ended. So the client begins each
// connection with a challenge: a random nonce, and the address that it dialed. The server
// answers with a MAC of both by a key that is in its data folder, and only for the address at
// which the connection has reached it: a program that forwards the challenge gets no answer
// for its own address. The client then uses this connection alone, so the proof is that of
// the program that gets the token.
//
// The route exists on a local system alone. It needs no token and gives nothing away but the
// MAC of the server's own address.
package proof
