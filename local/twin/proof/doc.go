// Package proof lets a client verify the server of a data folder before it sends the folder's
// token.
//
// After a server has ended, another program can listen at its address. So the client begins
// each connection with a challenge: a random nonce and the address that it dialed. The server
// answers with a MAC of both, computed with a key in its data folder. It answers only for the
// address at which the connection reached it, so a program that forwards the challenge gets no
// answer for its own address. The client then sends the token on the same connection, so only
// the verified program receives it.
//
// The route exists only on a local system. It needs no token and reveals only the MAC of the
// server's own address.
package proof
