-- DDP over SCTP for Wireshark and tshark, which know the payload protocols 16 and 17 by their names only: RFC 5043 with the enhanced
-- messages of RFC 6581 7. What a segment has behind its DDP-SSN goes to Wireshark's own dissector of DDP and RDMAP.
--
--	tshark -X lua_script:ddp_sctp.lua -d udp.port==7471,sctp -r FILE
--
-- The values of draft-ietf-rddp-sctp-00 are those of other protocols: -d sctp.ppi==1,ddp_sctp shows its segments.

local ddp = Dissector.get("iwarp_ddp_rdmap")
local functions = {
	[1] = "Initiate", [2] = "Accept", [3] = "Reject", [4] = "Terminate",
	[5] = "Enhanced Initiate", [6] = "Enhanced Accept", [7] = "Enhanced Reject",
}
local SSN_LEN, FUNCTION_LEN, BLOCK_LEN, PRIVATE_MAX, TERMINATE, ENHANCED = 2, 2, 4, 512, 4, 5

local segment = Proto("ddp_sctp", "DDP Segment Chunk")
local ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN")
segment.fields = { ssn }
local short = ProtoExpert.new("ddp_sctp.short", "Shorter than it has to be", expert.group.MALFORMED, expert.severity.ERROR)
segment.experts = { short }

local control = Proto("ddp_sctp_control", "DDP Stream Session Control")
local control_ssn = ProtoField.uint16("ddp_sctp_control.ssn", "DDP-SSN")
local code = ProtoField.uint16("ddp_sctp_control.function", "Function", base.DEC, functions)
local p2p = ProtoField.bool("ddp_sctp_control.p2p", "Peer-to-peer model", 16, nil, 0x8000)
local rtr_send = ProtoField.bool("ddp_sctp_control.rtr_send", "RTR: Send of nothing", 16, nil, 0x4000)
local ird = ProtoField.uint16("ddp_sctp_control.ird", "IRD", base.DEC, nil, 0x3fff)
local rtr_write = ProtoField.bool("ddp_sctp_control.rtr_write", "RTR: Write of nothing", 16, nil, 0x8000)
local rtr_read = ProtoField.bool("ddp_sctp_control.rtr_read", "RTR: Read of nothing", 16, nil, 0x4000)
local ord = ProtoField.uint16("ddp_sctp_control.ord", "ORD", base.DEC, nil, 0x3fff)
local private = ProtoField.bytes("ddp_sctp_control.private", "Private data")
control.fields = { control_ssn, code, p2p, rtr_send, ird, rtr_write, rtr_read, ord, private }
local wrong = ProtoExpert.new("ddp_sctp_control.wrong", "No such message", expert.group.MALFORMED, expert.severity.ERROR)
control.experts = { wrong }

function segment.dissector(tvb, pinfo, tree)
	local item = tree:add(segment, tvb(0, math.min(SSN_LEN, tvb:len())))

	if tvb:len() <= SSN_LEN then
		item:add_proto_expert_info(short)
		return
	end
	item:add(ssn, tvb(0, SSN_LEN))
	ddp:call(tvb(SSN_LEN):tvb(), pinfo, tree)
end

function control.dissector(tvb, pinfo, tree)
	local item, at = tree:add(control, tvb()), SSN_LEN + FUNCTION_LEN

	if tvb:len() < at then
		item:add_proto_expert_info(wrong)
		return
	end
	local fn = tvb(SSN_LEN, FUNCTION_LEN):uint()
	local enhanced = fn >= ENHANCED and functions[fn] ~= nil
	item:add(control_ssn, tvb(0, SSN_LEN))
	item:add(code, tvb(SSN_LEN, FUNCTION_LEN))
	item:append_text(": " .. (functions[fn] or "unknown"))
	pinfo.cols.info:append(" (" .. (functions[fn] or "unknown function") .. ")")
	if functions[fn] == nil or (enhanced and tvb:len() < at + BLOCK_LEN) or (fn == TERMINATE and tvb:len() > at)
		or tvb:len() - at > PRIVATE_MAX then
		item:add_proto_expert_info(wrong)
		return
	end
	if enhanced then
		for _, field in ipairs({ p2p, rtr_send, ird }) do item:add(field, tvb(at, 2)) end
		for _, field in ipairs({ rtr_write, rtr_read, ord }) do item:add(field, tvb(at + 2, 2)) end
		at = at + BLOCK_LEN
	end
	if tvb:len() > at then item:add(private, tvb(at)) end
end

local ppi = DissectorTable.get("sctp.ppi")
ppi:add(16, segment)
ppi:add(17, control)
