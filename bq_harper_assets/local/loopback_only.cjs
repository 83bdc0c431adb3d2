'use strict';
// This file is preloaded into every thread of the local Harper, which opens one more HTTP listener on all interfaces, on a
// port of the system's choice, and has no setting against it. Here every TCP listener is bound to loopback.
const Module = require('module');
const net = require('net');

const LOOPBACK = '127.0.0.1';

// Where the kernel can share one port between threads, Harper makes its sockets with this package.
const load = Module._load;
const wrapped = new WeakMap();
Module._load = function (request, ...rest) {
	const loaded = load.call(this, request, ...rest);
	if (request !== 'node-unix-socket') return loaded;
	if (!wrapped.has(loaded)) {
		const createReuseportFd = (port) => loaded.createReuseportFd(port, LOOPBACK);
		wrapped.set(loaded, { ...loaded, createReuseportFd });
	}
	return wrapped.get(loaded);
};

// Elsewhere it listens in Node's own way.
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
	const [first] = args;
	if (first !== null && typeof first === 'object') {
		// A handle, a descriptor or a path (a unix socket) has no port and stays as it is.
		if (first.port === undefined) return listen.apply(this, args);
		return listen.call(this, { ...first, host: LOOPBACK }, ...args.slice(1));
	}
	if (typeof first === 'string' && !/^\d+$/.test(first)) return listen.apply(this, args);
	const port = typeof first === 'function' ? 0 : Number(first ?? 0);
	const backlog = args.slice(1).find((arg) => typeof arg === 'number');
	const callback = args.find((arg) => typeof arg === 'function');
	return listen.call(this, { port, host: LOOPBACK, backlog }, callback);
};
