"""The service: coordinator and agents as programs on a network, with durable state.

It moves the same protocol as the simulator does: only links, stores and clocks are here. `Agent` is what an application
embeds, `Coordinator` what ``laconic serve`` runs. Both need the extra ``laconic[service]``.
"""
